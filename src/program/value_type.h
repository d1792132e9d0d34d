// What an instruction's factory asks of the types of a node's values.
#ifndef TUTTI_SRC_PROGRAM_VALUE_TYPE_H
#define TUTTI_SRC_PROGRAM_VALUE_TYPE_H

#include "src/graph/graph.h"

namespace tutti::program {

/// True where no gradient of the node needs a conversion: its first wanted result is of whole numbers or truth values,
/// or it is of real numbers and every tensor of real numbers among the arguments has its type, of which there is at
/// least one.
bool has_one_real_type(const graph::Graph& graph, const graph::Node& node);

/// True where the argument `position`, a constant, is none or the type that the node's first tensor and its first
/// result have.
bool keeps_type(const graph::Graph& graph, const graph::Node& node, size_t position);

}  // namespace tutti::program

#endif
