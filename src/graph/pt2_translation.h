// From the structs of a .pt2 program and its weights to a graph without shapes.
#ifndef TUTTI_SRC_GRAPH_PT2_TRANSLATION_H
#define TUTTI_SRC_GRAPH_PT2_TRANSLATION_H

#include <vector>

#include "src/graph/graph.h"
#include "src/graph/pt2_archive.h"
#include "src/graph/pt2_program.h"

namespace tutti::graph {

/// The values, nodes, parameters, buffers and constants of the program, in its order. Weights that several names share
/// become one parameter or buffer; subgraphs without gradients are inlined, with what goes into them detached; a
/// buffer that a functional program returns changed is written at the end. Shapes and types of results are left open,
/// those of inputs have the example's batch size, and every tensor that the program returns is an output.
///
/// Throws GraphError, naming the node, for unknown operators and for subgraphs other than those.
Graph translate_pt2(const Pt2Program& program, const std::vector<Pt2Weight>& weights,
                    const std::vector<Pt2Weight>& constants);

}  // namespace tutti::graph

#endif
