// Values that depend on constants alone, computed once.
#ifndef TUTTI_SRC_GRAPH_CONSTANT_FOLDING_H
#define TUTTI_SRC_GRAPH_CONSTANT_FOLDING_H

#include <ATen/core/Tensor.h>

#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Runs the nodes that read nothing but constants and each other's results, writes through views included, and takes
/// them out of the graph: what other nodes read of them becomes constants. Left as they are: random operators, values
/// that other nodes write into, large ones, and real numbers that float32 does not hold exactly, which are computed in
/// the program's own precision. A tensor of which a node reads only type and fixed shape (new_zeros, zeros_like) does not
/// count as read. `probed` are the graph's values as probe_shapes returns them. Throws GraphError, naming
/// the node, where one cannot run.
void fold_constants(Graph& graph, const std::vector<at::Tensor>& probed);

}  // namespace tutti::graph

#endif
