// The greatest or smallest values along a dimension, with their places.
#ifndef TUTTI_SRC_PROGRAM_EXTREMUM_H
#define TUTTI_SRC_PROGRAM_EXTREMUM_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::max.dim and min.dim. The gradient goes to the place that was found, one of equal ones.
std::unique_ptr<Instruction> make_extremum(const NodeContext& context);
bool extremum_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
