// Operators that only change a tensor's shape.
#ifndef TUTTI_SRC_PROGRAM_SHAPE_H
#define TUTTI_SRC_PROGRAM_SHAPE_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

std::unique_ptr<Instruction> make_flatten(const NodeContext& context);  ///< aten::flatten.using_ints
std::unique_ptr<Instruction> make_reshape(const NodeContext& context);  ///< aten::reshape, aten::view

/// True where at most one dimension of the input, and of the output, depends on the batch.
bool reshape_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
