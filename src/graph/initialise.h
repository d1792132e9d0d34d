// First values of parameters and buffers, from the model's own random stream.
#ifndef TUTTI_SRC_GRAPH_INITIALISE_H
#define TUTTI_SRC_GRAPH_INITIALISE_H

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "src/graph/graph.h"

namespace tutti::graph {

/// Uniform in +-1 / sqrt(fan_in): what PyTorch's linear and convolution layers begin with, weight and bias alike
/// (He et al.: Delving Deep into Rectifiers, 2015, with PyTorch's slope sqrt(5)).
Initialisation fan_in_uniform(int64_t fan_in);

/// Fills `tensor` with the first values of parameter number `index` of the graph, for a model with this seed: a pure
/// function of (seed, index, element), drawn in double and rounded to the tensor's type. Philox key: (seed, "init");
/// counter: (element / 2, index), 64 bits each; two elements per draw. Normal numbers by Box and Muller (1958), with
/// the C library's log, sin and cos. Requires a contiguous float or double tensor of the parameter's shape.
void initialise(const Parameter& parameter, int64_t index, uint64_t seed, at::Tensor& tensor);

}  // namespace tutti::graph

#endif
