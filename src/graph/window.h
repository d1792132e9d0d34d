// The sliding window of convolutions and pooling.
#ifndef TUTTI_SRC_GRAPH_WINDOW_H
#define TUTTI_SRC_GRAPH_WINDOW_H

#include <cstdint>
#include <string>
#include <vector>

#include "src/graph/layer_build.h"

namespace tutti::graph {

/// One entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;  ///< on each side
  std::vector<int64_t> dilation;
  bool ceil = false;  ///< a last window that starts inside the input counts, though it ends outside
};

/// The number of places of the window along an input of these sizes. Throws LayerError where it does not fit.
std::vector<int64_t> window_output(const LayerBuild& layer, const Window& window, const std::vector<int64_t>& input);

/// The input's shape [channels, spatial...] with `rank` spatial dimensions. Throws LayerError.
std::vector<int64_t> image_shape(const LayerBuild& layer, int64_t rank);

Argument ints(const std::vector<int64_t>& values);

}  // namespace tutti::graph

#endif
