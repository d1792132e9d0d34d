// Concatenations of tensors, and the counters of batch norm.
#ifndef TUTTI_SRC_PROGRAM_ELEMENTWISE_H
#define TUTTI_SRC_PROGRAM_ELEMENTWISE_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::cat along a dimension that is not the batch.
std::unique_ptr<Instruction> make_cat(const NodeContext& context);
bool cat_has_instruction(const graph::Graph& graph, const graph::Node& node);

/// aten::add_.Tensor(int64 buffer of one element, integer): adds in training, does nothing in evaluation. Nothing may
/// read its result.
std::unique_ptr<Instruction> make_counter(const NodeContext& context);
bool counter_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
