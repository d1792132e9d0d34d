// Writes in place, replaced by operators that make new tensors.
#ifndef TUTTI_SRC_GRAPH_WRITE_REPLACEMENT_H
#define TUTTI_SRC_GRAPH_WRITE_REPLACEMENT_H

#include <ATen/core/Tensor.h>

#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Replaces each node that writes into a result or an input (relu_, add_.Tensor) by the operator that makes a new
/// tensor, and lets later readers read that, wherever nothing else that is still read shares the written tensor's
/// memory. A write into a slice or selection becomes a scatter of what it makes into a new tensor, as whose part it is
/// read. Writes into buffers, into memory of which another view is read later, and operators without such a form stay
/// as they are. `probed` are the graph's values as probe_shapes returns them.
void replace_writes(Graph& graph, std::vector<at::Tensor> probed);

}  // namespace tutti::graph

#endif
