// Convolutions.
#include <fmt/format.h>

#include <numeric>

#include "src/graph/initialise.h"
#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

int64_t product(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

void expect_groups(const LayerBuild& layer, int64_t groups, int64_t in, int64_t out) {
  if (in % groups == 0 && out % groups == 0) return;
  layer.fail(
      fmt::format("expected `groups` to divide the input's channels ({}) and `out` ({}), found {}", in, out, groups));
}

/// Padding that keeps the size. Where it is uneven (an even kernel with an odd dilation) only the operator's own "same"
/// can express it.
struct SamePadding {
  std::vector<int64_t> each_side;
  bool even = true;
};

SamePadding same_padding(const LayerBuild& layer, const Window& window) {
  SamePadding padding;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.stride[i] != 1) layer.fail("`padding: same` needs stride 1; give the padding as a number");
    const int64_t total = window.dilation[i] * (window.kernel[i] - 1);
    padding.each_side.push_back(total / 2);
    if (total % 2 != 0) padding.even = false;
  }
  return padding;
}

template <int rank>
BuiltLayer build_convolution(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  const std::vector<int64_t> shape = image_shape(layer, rank);  // [channels, spatial...]
  const int64_t in = shape[0];
  const int64_t out = options.integer("out");
  const int64_t groups = options.integer("groups");
  const bool bias = options.boolean("bias");
  expect_groups(layer, groups, in, out);
  Window window{
      options.integers("kernel", rank), options.integers("stride", rank), {}, options.integers("dilation", rank)};
  const bool same = options.is_word("padding", "same");
  const SamePadding kept = same ? same_padding(layer, window) : SamePadding{options.integers("padding", rank)};
  window.padding = kept.each_side;

  std::vector<int64_t> result = {shape.begin() + 1, shape.end()};
  if (!same) result = window_output(layer, window, result);
  result.insert(result.begin(), out);

  std::vector<int64_t> filter = {out, in / groups};
  filter.insert(filter.end(), window.kernel.begin(), window.kernel.end());
  const Initialisation initialisation = fan_in_uniform(in / groups * product(window.kernel));
  const Argument weight = Argument::of(layer.parameter("weight", filter, initialisation));
  const Argument offset = bias ? Argument::of(layer.parameter("bias", {out}, initialisation)) : Argument::none();
  const std::string name = fmt::format("aten::conv{}d{}", rank, kept.even ? "" : ".padding");
  const ValueId output = layer.call(
      name,
      {Argument::of(layer.input()), weight, offset, ints(window.stride),
       kept.even ? ints(window.padding) : Argument::fixed("same"), ints(window.dilation), Argument::fixed(groups)},
      result);
  PythonModule module{fmt::format("nn.Conv{}d", rank),
                      {std::to_string(in), std::to_string(out), python_text(window.kernel)}};
  module.keyword("stride", python_text(window.stride), "1")
      .keyword("padding", kept.even ? python_text(window.padding) : "'same'", "0")
      .keyword("dilation", python_text(window.dilation), "1")
      .keyword("groups", std::to_string(groups), "1")
      .keyword("bias", python_text(bias), "True");
  return {output, module};
}

/// Every input pixel is spread over a window of the output: the shape rule of a convolution, turned around.
std::vector<int64_t> transposed_output(const LayerBuild& layer, const Window& window,
                                       const std::vector<int64_t>& output_padding, const std::vector<int64_t>& shape) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (output_padding[i] >= std::max(window.stride[i], window.dilation[i])) {
      layer.fail(fmt::format("expected `output_padding` below stride or dilation ({}, {}), found {}", window.stride[i],
                             window.dilation[i], output_padding[i]));
    }
    result.push_back((shape[i + 1] - 1) * window.stride[i] - 2 * window.padding[i] +
                     window.dilation[i] * (window.kernel[i] - 1) + output_padding[i] + 1);
    if (result.back() < 1) {
      layer.fail(
          fmt::format("expected a padding that leaves an output, found padding {} with kernel {}, stride {} on "
                      "an input {}",
                      window.padding[i], window.kernel[i], window.stride[i], layer.found(layer.input())));
    }
  }
  return result;
}

BuiltLayer build_transposed_convolution(LayerBuild& layer) {
  constexpr int kRank = 2;
  const LayerOptions& options = layer.options();
  const std::vector<int64_t> shape = image_shape(layer, kRank);  // [channels, height, width]
  const int64_t in = shape[0];
  const int64_t out = options.integer("out");
  const int64_t groups = options.integer("groups");
  const bool bias = options.boolean("bias");
  expect_groups(layer, groups, in, out);
  const Window window{options.integers("kernel", kRank), options.integers("stride", kRank),
                      options.integers("padding", kRank), options.integers("dilation", kRank)};
  const std::vector<int64_t> output_padding = options.integers("output_padding", kRank);
  std::vector<int64_t> result = transposed_output(layer, window, output_padding, shape);
  result.insert(result.begin(), out);

  // PyTorch counts the fan in of [in, out / groups, kernel...] along its second dimension.
  const Initialisation initialisation = fan_in_uniform(out / groups * product(window.kernel));
  const Argument weight =
      Argument::of(layer.parameter("weight", {in, out / groups, window.kernel[0], window.kernel[1]}, initialisation));
  const Argument offset = bias ? Argument::of(layer.parameter("bias", {out}, initialisation)) : Argument::none();
  const ValueId output =
      layer.call("aten::conv_transpose2d.input",
                 {Argument::of(layer.input()), weight, offset, ints(window.stride), ints(window.padding),
                  ints(output_padding), Argument::fixed(groups), ints(window.dilation)},
                 result);
  PythonModule module{"nn.ConvTranspose2d", {std::to_string(in), std::to_string(out), python_text(window.kernel)}};
  module.keyword("stride", python_text(window.stride), "1")
      .keyword("padding", python_text(window.padding), "0")
      .keyword("output_padding", python_text(output_padding), "0")
      .keyword("groups", std::to_string(groups), "1")
      .keyword("bias", python_text(bias), "True")
      .keyword("dilation", python_text(window.dilation), "1");
  return {output, module};
}

std::vector<LayerKey> convolution_keys() {
  return {{"out", "int >= 1", "", "number of output channels"},
          {"kernel", "int or list of ints, >= 1", "", "size of the window"},
          {"stride", "int or list of ints, >= 1", "1", "step of the window"},
          {"padding", "int or list of ints, >= 0, or same", "0",
           "zeros on each side; `same`: the output has the input's size"},
          {"dilation", "int or list of ints, >= 1", "1", "distance of the window's points"},
          {"groups", "int >= 1", "1", "number of channel groups that do not mix"},
          {"bias", "bool", "true", "add a learned offset per channel"}};
}

}  // namespace

std::vector<LayerEntry> convolution_layers() {
  return {
      {{"conv1d", "", convolution_keys(), "convolution over [channels, length]"}, build_convolution<1>},
      {{"conv2d", "", convolution_keys(), "convolution over [channels, height, width]"}, build_convolution<2>},
      {{"conv3d", "", convolution_keys(), "convolution over [channels, depth, height, width]"}, build_convolution<3>},
      {{"conv_transpose2d",
        "",
        {{"out", "int >= 1", "", "number of output channels"},
         {"kernel", "int or list of ints, >= 1", "", "size of the window"},
         {"stride", "int or list of ints, >= 1", "1", "step of the window in the output"},
         {"padding", "int or list of ints, >= 0", "0", "rows and columns cut from each side of the output"},
         {"output_padding", "int or list of ints, >= 0", "0", "rows and columns added at the output's end"},
         {"dilation", "int or list of ints, >= 1", "1", "distance of the window's points"},
         {"groups", "int >= 1", "1", "number of channel groups that do not mix"},
         {"bias", "bool", "true", "add a learned offset per channel"}},
        "transposed convolution over [channels, height, width]: each input spreads over a window of the output"},
       build_transposed_convolution},
  };
}

}  // namespace tutti::graph
