// Who reads a graph's values.
#ifndef TUTTI_SRC_PROGRAM_VALUE_USE_H
#define TUTTI_SRC_PROGRAM_VALUE_USE_H

#include "src/graph/graph.h"

namespace tutti::program {

/// True where the value is an output of the graph, or an argument of another node than `apart_from`.
bool is_read(const graph::Graph& graph, graph::ValueId value, const graph::Node& apart_from);

/// True where nothing reads the node's results but the first.
bool gives_one_result(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
