// First values of parameters and buffers, from the model's own random stream.
#ifndef TUTTI_SRC_GRAPH_INITIALISE_H
#define TUTTI_SRC_GRAPH_INITIALISE_H

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Fills `tensor` with the first values of parameter number `index` of the graph, for a model with this seed: a pure
/// function of (seed, index, element), drawn in double and rounded to the tensor's type.
void initialise(const Parameter& parameter, int64_t index, uint64_t seed, at::Tensor& tensor);

}  // namespace tutti::graph

#endif
