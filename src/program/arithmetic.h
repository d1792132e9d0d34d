// Arithmetic of two operands, which are broadcast against each other.
#ifndef TUTTI_SRC_PROGRAM_ARITHMETIC_H
#define TUTTI_SRC_PROGRAM_ARITHMETIC_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::add, sub, rsub: Tensor and Scalar.
std::unique_ptr<Instruction> make_sum(const NodeContext& context);

/// aten::mul, div (Tensor and Scalar), maximum, minimum, max.other, min.other, clamp_min.Tensor, clamp_max.Tensor.
std::unique_ptr<Instruction> make_binary(const NodeContext& context);

/// True where each operand is a tensor or a number and no type changes.
bool arithmetic_has_instruction(const graph::Graph& graph, const graph::Node& node);

/// aten::clamp.Tensor with one bound.
std::unique_ptr<Instruction> make_clamp(const NodeContext& context);
bool clamp_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
