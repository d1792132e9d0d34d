// Convolutions.
#include <fmt/format.h>

#include <algorithm>

#include "src/graph/initialise.h"
#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

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

/// What convolutions of both directions are told.
struct Convolution {
  int64_t in = 0;
  int64_t out = 0;
  int64_t groups = 1;
  bool bias = true;
  Window window;  ///< padding is left open
};

Convolution read_convolution(const LayerBuild& layer, int64_t rank, int64_t in) {
  const LayerOptions& options = layer.options();
  Convolution read{
      in, options.integer("out"), options.integer("groups"), options.boolean("bias"),
      Window{
          options.integers("kernel", rank), options.integers("stride", rank), {}, options.integers("dilation", rank)}};
  if (read.in % read.groups != 0 || read.out % read.groups != 0) {
    layer.fail(fmt::format("expected `groups` to divide the input's channels ({}) and `out` ({}), found {}", read.in,
                           read.out, read.groups));
  }
  return read;
}

struct Filter {
  Argument weight;
  Argument bias;
};

/// Weight [first, second, kernel...] and bias [out]. PyTorch counts the fan in along the weight's second dimension, in
/// transposed convolutions too.
Filter add_filter(LayerBuild& layer, const Convolution& convolution, int64_t first, int64_t second) {
  std::vector<int64_t> shape = {first, second};
  shape.insert(shape.end(), convolution.window.kernel.begin(), convolution.window.kernel.end());
  const Initialisation initialisation = fan_in_uniform(second * element_count(convolution.window.kernel));
  const Argument weight = Argument::of(layer.parameter("weight", shape, initialisation));
  if (!convolution.bias) return {weight, Argument::none()};
  return {weight, Argument::of(layer.parameter("bias", {convolution.out}, initialisation))};
}

PythonModule convolution_module(const std::string& type, const Convolution& convolution, const std::string& padding) {
  const Window& window = convolution.window;
  PythonModule module{type,
                      {std::to_string(convolution.in), std::to_string(convolution.out), python_text(window.kernel)}};
  module.keyword("stride", python_text(window.stride), "1")
      .keyword("padding", padding, "0")
      .keyword("dilation", python_text(window.dilation), "1")
      .keyword("groups", std::to_string(convolution.groups), "1")
      .keyword("bias", python_text(convolution.bias), "True");
  return module;
}

template <int rank>
BuiltLayer build_convolution(LayerBuild& layer) {
  const std::vector<int64_t> shape = image_shape(layer, rank);  // [channels, spatial...]
  Convolution convolution = read_convolution(layer, rank, shape[0]);
  Window& window = convolution.window;
  const bool same = layer.options().is_word("padding", "same");
  const SamePadding kept = same ? same_padding(layer, window) : SamePadding{layer.options().integers("padding", rank)};
  window.padding = kept.each_side;

  std::vector<int64_t> result = {shape.begin() + 1, shape.end()};
  if (!same) result = window_output(layer, window, result);
  result.insert(result.begin(), convolution.out);
  const Filter filter = add_filter(layer, convolution, convolution.out, convolution.in / convolution.groups);
  const ValueId output = layer.call(fmt::format("aten::conv{}d{}", rank, kept.even ? "" : ".padding"),
                                    {Argument::of(layer.input()), filter.weight, filter.bias, ints(window.stride),
                                     kept.even ? ints(window.padding) : Argument::fixed("same"), ints(window.dilation),
                                     Argument::fixed(convolution.groups)},
                                    result);
  return {output, convolution_module(fmt::format("nn.Conv{}d", rank), convolution,
                                     kept.even ? python_text(window.padding) : "'same'")};
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
  const std::vector<int64_t> shape = image_shape(layer, kRank);  // [channels, height, width]
  Convolution convolution = read_convolution(layer, kRank, shape[0]);
  Window& window = convolution.window;
  window.padding = layer.options().integers("padding", kRank);
  const std::vector<int64_t> output_padding = layer.options().integers("output_padding", kRank);
  std::vector<int64_t> result = transposed_output(layer, window, output_padding, shape);
  result.insert(result.begin(), convolution.out);

  const Filter filter = add_filter(layer, convolution, convolution.in, convolution.out / convolution.groups);
  const ValueId output =
      layer.call("aten::conv_transpose2d.input",
                 {Argument::of(layer.input()), filter.weight, filter.bias, ints(window.stride), ints(window.padding),
                  ints(output_padding), Argument::fixed(convolution.groups), ints(window.dilation)},
                 result);
  PythonModule module = convolution_module("nn.ConvTranspose2d", convolution, python_text(window.padding));
  module.keyword("output_padding", python_text(output_padding), "0");
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
