// Sums of products by subscripts.
#ifndef TUTTI_SRC_PROGRAM_EINSUM_H
#define TUTTI_SRC_PROGRAM_EINSUM_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::einsum.
std::unique_ptr<Instruction> make_einsum(const NodeContext& context);

/// True where every subscript of an operand occurs once in it, and again in the result or in another operand: then each
/// gradient is an einsum itself. No ellipsis, no broadcast of a size of 1.
bool einsum_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
