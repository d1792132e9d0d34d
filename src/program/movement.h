// Operators of one tensor that copy its elements elsewhere, repeat them, or only change their type or layout.
#ifndef TUTTI_SRC_PROGRAM_MOVEMENT_H
#define TUTTI_SRC_PROGRAM_MOVEMENT_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::contiguous, clone, alias, to, type_as between real floating-point types.
std::unique_ptr<Instruction> make_copy(const NodeContext& context);
bool copy_has_instruction(const graph::Graph& graph, const graph::Node& node);

std::unique_ptr<Instruction> make_expand(const NodeContext& context);  ///< aten::expand, expand_as, broadcast_to
std::unique_ptr<Instruction> make_repeat(const NodeContext& context);  ///< aten::repeat, tile
std::unique_ptr<Instruction> make_flip(const NodeContext& context);
std::unique_ptr<Instruction> make_roll(const NodeContext& context);
std::unique_ptr<Instruction> make_pixel_shuffle(const NodeContext& context);
std::unique_ptr<Instruction> make_pixel_unshuffle(const NodeContext& context);
std::unique_ptr<Instruction> make_unfold(const NodeContext& context);  ///< aten::unfold: windows along a dimension

/// aten::pad with a constant, aten::constant_pad_nd.
std::unique_ptr<Instruction> make_pad(const NodeContext& context);
bool pad_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
