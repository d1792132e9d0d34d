// Normalisation layers.
#ifndef TUTTI_SRC_PROGRAM_NORMALISATION_H
#define TUTTI_SRC_PROGRAM_NORMALISATION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::batch_norm. In training the frame's running statistics are updated in place. Forward throws
/// std::runtime_error where a channel has fewer than 2 values to take statistics of.
std::unique_ptr<Instruction> make_batch_norm(const NodeContext& context);

std::unique_ptr<Instruction> make_layer_norm(const NodeContext& context);  ///< aten::layer_norm, native_layer_norm
std::unique_ptr<Instruction> make_group_norm(const NodeContext& context);  ///< aten::group_norm
/// aten::native_group_norm.
std::unique_ptr<Instruction> make_native_group_norm(const NodeContext& context);

/// aten::instance_norm of [batch, channels, ...] without running statistics.
std::unique_ptr<Instruction> make_instance_norm(const NodeContext& context);
bool instance_norm_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
