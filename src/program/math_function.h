// Functions of real numbers, element by element, and running sums.
#ifndef TUTTI_SRC_PROGRAM_MATH_FUNCTION_H
#define TUTTI_SRC_PROGRAM_MATH_FUNCTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::abs, clamp, clamp_max, clamp_min, cos, erf, exp, expm1, log, log1p, nan_to_num, neg, pow.Tensor_Scalar,
/// reciprocal, rsqrt, sin, sqrt, square. Bounds that are tensors have no instruction.
std::unique_ptr<Instruction> make_math_function(const NodeContext& context);

/// aten::cumsum.
std::unique_ptr<Instruction> make_cumulative_sum(const NodeContext& context);
bool cumulative_sum_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
