// Which nodes need no backward: those that a plain call of their operator runs.
#ifndef TUTTI_SRC_PROGRAM_GRADIENT_FREE_H
#define TUTTI_SRC_PROGRAM_GRADIENT_FREE_H

#include <vector>

#include "src/graph/graph.h"
#include "src/program/gradient_flow.h"
#include "src/program/layouts.h"

namespace tutti::program {

/// By index into Graph::nodes: true where no result is differentiated, the operator draws no random numbers, and no
/// gradient can notice what it writes. It may write into results and buffers which nothing differentiated shares memory
/// with, or has read before, if what it writes depends on no trainable parameter. Throws graph::GraphError where
/// LibTorch has no such operator, or the arguments do not fit it.
std::vector<bool> gradient_free_nodes(const graph::Graph& graph, const ValueSet& differentiated,
                                      const Layouts& layouts);

}  // namespace tutti::program

#endif
