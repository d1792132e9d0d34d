// A graph cut down to what some of its outputs need.
#ifndef TUTTI_SRC_GRAPH_OUTPUT_SELECTION_H
#define TUTTI_SRC_GRAPH_OUTPUT_SELECTION_H

#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Makes `outputs` the graph's outputs. Drops nodes that neither they nor any write to a buffer needs (batch norm's
/// statistics are such writes), and marks parameters from which no gradient path leads to an output as not trainable,
/// so that optimizers leave them alone, as PyTorch does.
void select_outputs(Graph& graph, std::vector<ValueId> outputs);

}  // namespace tutti::graph

#endif
