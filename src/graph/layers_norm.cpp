// Normalisation: batch norm, layer norm, group norm.
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

/// Scale and offset, which begin as 1 and 0; none without `affine`.
struct Affine {
  Argument weight = Argument::none();
  Argument bias = Argument::none();
};

Affine add_affine(LayerBuild& layer, const std::vector<int64_t>& shape) {
  if (!layer.options().boolean("affine")) return {};
  const Initialisation one{Initialisation::Kind::kConstant, 1};
  const Initialisation zero{Initialisation::Kind::kConstant, 0};
  const ValueId weight = layer.parameter("weight", shape, one);
  return {Argument::of(weight), Argument::of(layer.parameter("bias", shape, zero))};
}

/// `rank` counts spatial dimensions. A batch norm over [channels] is PyTorch's BatchNorm1d too.
BuiltLayer build_batch_norm(LayerBuild& layer, int64_t rank) {
  const LayerOptions& options = layer.options();
  const int64_t channels = layer.any_shape()[0];
  const double momentum = options.number("momentum");
  const double eps = options.number("eps");
  const Affine affine = add_affine(layer, {channels});
  const ValueId mean = layer.buffer("running_mean", at::zeros({channels}));
  const ValueId variance = layer.buffer("running_var", at::ones({channels}));
  const ValueId batches = layer.buffer("num_batches_tracked", at::scalar_tensor(0, at::kLong));
  layer.graph().add_node(
      {"aten::add_.Tensor", {Argument::of(batches), Argument::fixed(1), Argument::fixed(1)}, {}, at::kLong},
      layer.label());
  const ValueId output = layer.call_like_input(
      "aten::batch_norm",
      {Argument::of(layer.input()), affine.weight, affine.bias, Argument::of(mean), Argument::of(variance),
       Argument::fixed(true), Argument::fixed(momentum), Argument::fixed(eps), Argument::fixed(true)});
  PythonModule module{fmt::format("nn.BatchNorm{}d", std::max<int64_t>(rank, 1)), {std::to_string(channels)}};
  module.keyword("eps", python_text(eps), "1e-05")
      .keyword("momentum", python_text(momentum), "0.1")
      .keyword("affine", python_text(options.boolean("affine")), "True");
  return {output, module};
}

template <int rank>
BuiltLayer build_ranked_batch_norm(LayerBuild& layer) {
  const bool vector = rank == 1 && layer.any_shape().size() == 1;
  if (!vector) image_shape(layer, rank);
  return build_batch_norm(layer, rank);
}

BuiltLayer build_any_batch_norm(LayerBuild& layer) {
  const int64_t rank = std::ssize(layer.any_shape());
  if (rank < 1 || rank > 4) {
    layer.fail(
        fmt::format("expected an input of 1 to 4 dimensions per sample ([channels, ...]), found {}; put "
                    "`reshape` before it",
                    layer.found(layer.input())));
  }
  return build_batch_norm(layer, rank - 1);
}

BuiltLayer build_layer_norm(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  const std::vector<int64_t> shape = layer.any_shape();
  const int64_t dims = options.integer("dims");
  if (dims > std::ssize(shape)) {
    layer.fail(
        fmt::format("expected an input of at least {} dimensions per sample (the key `dims`), found {}; use "
                    "fewer `dims`",
                    dims, layer.found(layer.input())));
  }
  const std::vector<int64_t> normalised(shape.end() - dims, shape.end());
  const double eps = options.number("eps");
  const Affine affine = add_affine(layer, normalised);
  const ValueId output =
      layer.call_like_input("aten::layer_norm", {Argument::of(layer.input()), ints(normalised), affine.weight,
                                                 affine.bias, Argument::fixed(eps), Argument::fixed(true)});
  PythonModule module{"nn.LayerNorm", {text_of(normalised)}};
  module.keyword("eps", python_text(eps), "1e-05")
      .keyword("elementwise_affine", python_text(options.boolean("affine")), "True");
  return {output, module};
}

BuiltLayer build_group_norm(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  const int64_t groups = options.integer("groups");
  const std::vector<int64_t> shape = layer.any_shape();
  if (shape.empty() || shape[0] % groups != 0) {
    layer.fail(fmt::format("expected an input [channels, ...] whose channels `groups` ({}) divides, found {}", groups,
                           layer.found(layer.input())));
  }
  const double eps = options.number("eps");
  const Affine affine = add_affine(layer, {shape[0]});
  const ValueId output =
      layer.call_like_input("aten::group_norm", {Argument::of(layer.input()), Argument::fixed(groups), affine.weight,
                                                 affine.bias, Argument::fixed(eps), Argument::fixed(true)});
  PythonModule module{"nn.GroupNorm", {std::to_string(groups), std::to_string(shape[0])}};
  module.keyword("eps", python_text(eps), "1e-05").keyword("affine", python_text(options.boolean("affine")), "True");
  return {output, module};
}

const LayerKey kEps = {"eps", "float > 0", "1e-05", "added to the variance"};
const LayerKey kAffine = {"affine", "bool", "true", "learn a scale and an offset"};

std::vector<LayerKey> batch_norm_keys() {
  return {kEps, {"momentum", "float in [0, 1]", "0.1", "share of the new batch in the running statistics"}, kAffine};
}

}  // namespace

std::vector<LayerEntry> normalisation_layers() {
  return {
      {{"batch_norm", "", batch_norm_keys(), "batch norm over the channels of any input [channels, ...]"},
       build_any_batch_norm},
      {{"batch_norm1d", "", batch_norm_keys(), "batch norm over [channels] or [channels, length]"},
       build_ranked_batch_norm<1>},
      {{"batch_norm2d", "", batch_norm_keys(), "batch norm over [channels, height, width]"},
       build_ranked_batch_norm<2>},
      {{"batch_norm3d", "", batch_norm_keys(), "batch norm over [channels, depth, height, width]"},
       build_ranked_batch_norm<3>},
      {{"layer_norm",
        "dims",
        {{"dims", "int >= 1", "1", "number of last dimensions that are normalised together"}, kEps, kAffine},
        "normalises each sample over its last dimensions"},
       build_layer_norm},
      {{"group_norm",
        "groups",
        {{"groups", "int >= 1", "", "number of groups of channels"}, kEps, kAffine},
        "normalises each sample over groups of channels"},
       build_group_norm},
  };
}

}  // namespace tutti::graph
