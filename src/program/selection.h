// Choices between two operands by a mask.
#ifndef TUTTI_SRC_PROGRAM_SELECTION_H
#define TUTTI_SRC_PROGRAM_SELECTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

std::unique_ptr<Instruction> make_where(const NodeContext& context);        ///< aten::where with two operands
std::unique_ptr<Instruction> make_masked_fill(const NodeContext& context);  ///< aten::masked_fill

/// True where mask and operands are tensors or numbers and no type changes.
bool selection_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
