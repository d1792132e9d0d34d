// Pooling.
#include <fmt/format.h>

#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

Window read_window(const LayerBuild& layer, int64_t rank, const std::vector<int64_t>& dilation) {
  const LayerOptions& options = layer.options();
  Window window;
  window.kernel = options.integers("kernel", rank);
  window.stride = options.is_word("stride", "kernel") ? window.kernel : options.integers("stride", rank);
  window.padding = options.integers("padding", rank);
  window.dilation = dilation;
  window.ceil = options.boolean("ceil_mode");
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.padding[i] * 2 > window.kernel[i]) {
      layer.fail(fmt::format("the key `padding`: expected at most half of the kernel ({}), found {}", window.kernel[i],
                             window.padding[i]));
    }
  }
  return window;
}

/// [channels, spatial...] of the result.
std::vector<int64_t> pooled_shape(const LayerBuild& layer, const Window& window, const std::vector<int64_t>& shape) {
  std::vector<int64_t> result = window_output(layer, window, {shape.begin() + 1, shape.end()});
  result.insert(result.begin(), shape[0]);
  return result;
}

PythonModule pooling_module(const std::string& type, const Window& window) {
  PythonModule module{type, {python_text(window.kernel)}};
  module.keyword("stride", python_text(window.stride), python_text(window.kernel))
      .keyword("padding", python_text(window.padding), "0");
  return module;
}

template <int rank>
BuiltLayer build_max_pool(LayerBuild& layer) {
  const std::vector<int64_t> shape = image_shape(layer, rank);
  const Window window = read_window(layer, rank, layer.options().integers("dilation", rank));
  const ValueId output = layer.call(fmt::format("aten::max_pool{}d", rank),
                                    {Argument::of(layer.input()), ints(window.kernel), ints(window.stride),
                                     ints(window.padding), ints(window.dilation), Argument::fixed(window.ceil)},
                                    pooled_shape(layer, window, shape));
  PythonModule module = pooling_module(fmt::format("nn.MaxPool{}d", rank), window);
  module.keyword("dilation", python_text(window.dilation), "1").keyword("ceil_mode", python_text(window.ceil), "False");
  return {output, module};
}

template <int rank>
BuiltLayer build_avg_pool(LayerBuild& layer) {
  const std::vector<int64_t> shape = image_shape(layer, rank);
  const Window window = read_window(layer, rank, std::vector<int64_t>(rank, 1));
  const bool count_padding = layer.options().boolean("count_include_pad");
  std::vector<Argument> arguments = {Argument::of(layer.input()),  ints(window.kernel),
                                     ints(window.stride),          ints(window.padding),
                                     Argument::fixed(window.ceil), Argument::fixed(count_padding)};
  if (rank > 1) arguments.push_back(Argument::none());  // divisor_override
  const ValueId output =
      layer.call(fmt::format("aten::avg_pool{}d", rank), std::move(arguments), pooled_shape(layer, window, shape));
  PythonModule module = pooling_module(fmt::format("nn.AvgPool{}d", rank), window);
  module.keyword("ceil_mode", python_text(window.ceil), "False")
      .keyword("count_include_pad", python_text(count_padding), "True");
  return {output, module};
}

template <int rank>
BuiltLayer build_adaptive_avg_pool(LayerBuild& layer) {
  std::vector<int64_t> result = layer.options().integers("out", rank);
  const PythonModule module{fmt::format("nn.AdaptiveAvgPool{}d", rank), {python_text(result)}};
  const Argument size = ints(result);
  result.insert(result.begin(), image_shape(layer, rank)[0]);
  const ValueId output =
      layer.call(fmt::format("aten::adaptive_avg_pool{}d", rank), {Argument::of(layer.input()), size}, result);
  return {output, module};
}

std::vector<LayerKey> window_keys() {
  return {
      {"kernel", "int or list of ints, >= 1", "", "size of the window"},
      {"stride", "int or list of ints, >= 1, or kernel", "kernel", "step of the window; `kernel`: the kernel's size"},
      {"padding", "int or list of ints, >= 0", "0", "rows added on each side, at most half of the kernel"},
      {"ceil_mode", "bool", "false", "count a last window that ends outside of the input"}};
}

LayerDeclaration max_pool(int rank) {
  LayerDeclaration declaration{fmt::format("max_pool{}d", rank), "kernel", window_keys(),
                               "the greatest value of each window"};
  declaration.keys.push_back({"dilation", "int or list of ints, >= 1", "1", "distance of the window's points"});
  return declaration;
}

LayerDeclaration avg_pool(int rank) {
  LayerDeclaration declaration{fmt::format("avg_pool{}d", rank), "kernel", window_keys(), "the mean of each window"};
  declaration.keys.push_back({"count_include_pad", "bool", "true", "padding counts as zeros in the mean"});
  return declaration;
}

LayerDeclaration adaptive_avg_pool(int rank) {
  return {fmt::format("adaptive_avg_pool{}d", rank),
          "out",
          {{"out", "int or list of ints, >= 1", "", "size of the output"}},
          "means over windows chosen so that the output has the size `out`"};
}

}  // namespace

std::vector<LayerEntry> pooling_layers() {
  return {
      {max_pool(1), build_max_pool<1>},
      {max_pool(2), build_max_pool<2>},
      {max_pool(3), build_max_pool<3>},
      {avg_pool(1), build_avg_pool<1>},
      {avg_pool(2), build_avg_pool<2>},
      {avg_pool(3), build_avg_pool<3>},
      {adaptive_avg_pool(1), build_adaptive_avg_pool<1>},
      {adaptive_avg_pool(2), build_adaptive_avg_pool<2>},
      {adaptive_avg_pool(3), build_adaptive_avg_pool<3>},
  };
}

}  // namespace tutti::graph
