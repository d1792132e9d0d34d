// Sums, means, extremes, norms and variances over dimensions.
#ifndef TUTTI_SRC_PROGRAM_REDUCTION_H
#define TUTTI_SRC_PROGRAM_REDUCTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::amax, amin, linalg_vector_norm (of order 1 and 2), logsumexp, mean and mean.dim, std.dim and std.correction,
/// sum and sum.dim_IntList, var.dim and var.correction. Equal extremes share the gradient.
std::unique_ptr<Instruction> make_reduction(const NodeContext& context);
bool reduction_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
