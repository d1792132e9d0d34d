// Shapes, types and aliasing of all values of a graph, found by running it without data.
#ifndef TUTTI_SRC_GRAPH_SHAPE_PROBE_H
#define TUTTI_SRC_GRAPH_SHAPE_PROBE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Runs the graph once, in training, for a batch of `rows`, on LibTorch's meta device, whose tensors have no memory. An
/// operator that has no form for that device runs on the CPU with zeros. Returns the values by ValueId: two that share
/// memory share a storage, and numbers are known. Values of the graph with no shape yet are those that nodes make.
/// Throws GraphError, naming the node, where one cannot run, or makes a shape that depends on more than shapes.
std::vector<at::Tensor> probe_shapes(const Graph& graph, int64_t rows);

/// Runs one node on values as probe_shapes returned them.
void probe_node(const Node& node, std::vector<at::Tensor>& values);

}  // namespace tutti::graph

#endif
