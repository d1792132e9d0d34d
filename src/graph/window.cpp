// The sliding window of convolutions and pooling.
#include "src/graph/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::graph {

std::vector<int64_t> window_output(const LayerBuild& layer, const Window& window, const std::vector<int64_t>& input) {
  std::vector<int64_t> output;
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    const int64_t room = input[i] + 2 * window.padding[i] - reach;
    if (room < 0) {
      layer.fail(
          fmt::format("expected an input of at least {} along dimension {} of its {} (kernel {}, dilation {}, "
                      "padding {}), found {}; use a smaller kernel, more padding or fewer poolings before it",
                      reach - 2 * window.padding[i], i, input.size() == 1 ? "length" : "image", window.kernel[i],
                      window.dilation[i], window.padding[i], layer.found(layer.input())));
    }
    int64_t places = room / window.stride[i] + 1;
    const bool rest = room % window.stride[i] != 0;
    if (window.ceil && rest && places * window.stride[i] < input[i] + window.padding[i]) ++places;
    output.push_back(places);
  }
  return output;
}

std::vector<int64_t> image_shape(const LayerBuild& layer, int64_t rank) {
  static const std::string words[] = {"[channels, length]", "[channels, height, width]",
                                      "[channels, depth, height, width]"};
  const std::vector<int64_t> found = layer.any_shape();
  std::string advice;
  if (std::ssize(found) == rank) {
    advice = fmt::format("put `reshape: [1, {}]` before it to add a channel", fmt::join(found, ", "));
  }
  return layer.shape(rank + 1, words[rank - 1], advice);
}

Argument ints(const std::vector<int64_t>& values) { return Argument::fixed(values); }

}  // namespace tutti::graph
