// Layers that change the shape alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

/// Indices stay indices: the result has the input's type.
ValueId reshaped(LayerBuild& layer, std::string_view target, std::vector<Argument> arguments,
                 const std::vector<int64_t>& shape) {
  return layer.call(target, std::move(arguments), shape, layer.graph().value(layer.input()).type);
}

BuiltLayer build_flatten(LayerBuild& layer) {
  const std::vector<int64_t> shape = layer.any_shape();
  const int64_t rank = std::ssize(shape) + 1;  // dimensions are counted with the batch, as PyTorch counts them
  const int64_t start = layer.options().integer("start_dim");
  const int64_t end = layer.options().integer("end_dim");
  const int64_t last = end < 0 ? end + rank : end;
  if (start < 1 || last < start || last >= rank) {
    layer.fail(
        fmt::format("expected 1 <= start_dim <= end_dim < {} (dimension 0 is the batch), found start_dim {}, "
                    "end_dim {} for an input {}",
                    rank, start, end, layer.found(layer.input())));
  }
  std::vector<int64_t> result(shape.begin(), shape.begin() + start - 1);
  result.push_back(
      element_count(std::span(shape).subspan(static_cast<size_t>(start - 1), static_cast<size_t>(last - start + 1))));
  result.insert(result.end(), shape.begin() + last, shape.end());
  PythonModule module{"nn.Flatten", {}};
  module.keyword("start_dim", std::to_string(start), "1").keyword("end_dim", std::to_string(end), "-1");
  return {reshaped(layer, "aten::flatten.using_ints",
                   {Argument::of(layer.input()), Argument::fixed(start), Argument::fixed(end)}, result),
          module};
}

/// The target shape with its one -1, if any, worked out.
std::vector<int64_t> resolved_shape(const LayerBuild& layer) {
  std::vector<int64_t> shape = layer.options().json("shape").get<std::vector<int64_t>>();
  const int64_t elements = element_count(layer.any_shape());
  const auto open = std::ranges::find(shape, -1);
  double known = 1;
  for (int64_t size : shape) known *= size == -1 ? 1 : static_cast<double>(size);
  const bool sizes = std::ranges::count(shape, -1) <= 1 && known >= 1 &&
                     std::ranges::all_of(shape, [](int64_t size) { return size == -1 || size >= 1; });
  if (!sizes)
    layer.fail(fmt::format("the key `shape`: expected sizes >= 1, at most one of them -1, found {}", text_of(shape)));
  const bool fits = known <= static_cast<double>(elements) && elements % static_cast<int64_t>(known) == 0;
  if (open != shape.end() && fits) *open = elements / static_cast<int64_t>(known);
  if (!fits || element_count(shape) != elements) {
    layer.fail(
        fmt::format("expected an input of as many elements per sample as the shape {}, found {} ({} elements); "
                    "make one of the sizes -1 to have it computed",
                    text_of(shape), layer.found(layer.input()), elements));
  }
  return shape;
}

BuiltLayer build_reshape(LayerBuild& layer) {
  const std::vector<int64_t> shape = resolved_shape(layer);
  static_assert(kBatch == -1, "aten::reshape reads -1 as the size that is left");
  layer.scope().python_classes->insert("Reshape");
  PythonModule module{"Reshape", {}};
  for (int64_t size : shape) module.arguments.push_back(std::to_string(size));
  return {reshaped(layer, "aten::reshape", {Argument::of(layer.input()), ints(batched(shape))}, shape), module};
}

}  // namespace

std::vector<LayerEntry> shape_layers() {
  return {
      {{"flatten",
        "start_dim",
        {{"start_dim", "int", "1", "first dimension that is merged; 0 is the batch"},
         {"end_dim", "int", "-1", "last dimension that is merged; -1 is the last of all"}},
        "merges dimensions into one"},
       build_flatten},
      {{"reshape",
        "shape",
        {{"shape", "list of ints", "", "the shape per sample, without the batch; one size may be -1"}},
        "gives each sample another shape"},
       build_reshape},
  };
}

}  // namespace tutti::graph
