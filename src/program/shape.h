// Operators that keep all elements and change a tensor's shape or the order of its dimensions.
#ifndef TUTTI_SRC_PROGRAM_SHAPE_H
#define TUTTI_SRC_PROGRAM_SHAPE_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// Every operator whose result has the elements of its first argument in their order: view, flatten, squeeze...
std::unique_ptr<Instruction> make_reshape(const NodeContext& context);

/// Every operator whose result has the dimensions of its only tensor in another order: transpose, permute, movedim...
std::unique_ptr<Instruction> make_permute(const NodeContext& context);
/// False for complex numbers, some of which these operators conjugate.
bool permute_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
