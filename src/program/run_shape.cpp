// Sizes that are multiples of the batch are filled in.
#include "src/program/run_shape.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>

namespace tutti::program {

RunShape::RunShape(const graph::Graph& graph, graph::ValueId value) : sizes_(graph.values[value].shape) {
  if (std::all_of(sizes_.begin(), sizes_.end(), [](int64_t size) { return size >= 0; })) return;
  if (graph.inputs.empty()) {
    throw graph::GraphError(
        fmt::format("value {} (\"{}\"): a size depends on the batch, and the graph has no input to take it from. Check "
                    "what built the graph.",
                    value, graph.values[value].name));
  }
  input_ = graph.inputs.front();
}

at::DimVector RunShape::operator()(const Frame& frame) const {
  at::DimVector sizes(sizes_.begin(), sizes_.end());
  if (input_ == graph::kNoValue) return sizes;
  const int64_t rows = frame.values[input_].size(0);
  for (int64_t& size : sizes) size = graph::size_at(size, rows);
  return sizes;
}

}  // namespace tutti::program
