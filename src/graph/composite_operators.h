// The composite operators that a decomposed program came from.
#ifndef TUTTI_SRC_GRAPH_COMPOSITE_OPERATORS_H
#define TUTTI_SRC_GRAPH_COMPOSITE_OPERATORS_H

#include "src/graph/graph.h"

namespace tutti::graph {

/// Replaces kernels that run_decompositions() leaves in a program (convolution, native_layer_norm, native_group_norm,
/// batch norm without statistics, max_pool2d_with_indices, _adaptive_avg_pool2d and their kind) by the operators that a
/// model calls (conv2d, layer_norm, ...), which instructions know, wherever nobody reads their further results.
void restore_composites(Graph& graph);

}  // namespace tutti::graph

#endif
