// Layers with a dense weight: linear, embedding.
#include <fmt/format.h>

#include <cmath>

#include "src/graph/initialise.h"
#include "src/graph/layer_families.h"

namespace tutti::graph {
namespace {

BuiltLayer build_linear(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  std::vector<int64_t> shape = layer.any_shape();
  if (!options.boolean("each_position")) shape = layer.shape(1, "[features]", "put `flatten` before it");
  layer.expect_float();
  if (shape.empty())
    layer.fail("expected an input of at least 1 dimension per sample, found a number; put `reshape` before it");
  const int64_t in = shape.back();
  const int64_t out = options.integer("out");
  const bool bias = options.boolean("bias");
  const Initialisation initialisation = fan_in_uniform(in);
  const Argument weight = Argument::of(layer.parameter("weight", {out, in}, initialisation));
  const Argument offset = bias ? Argument::of(layer.parameter("bias", {out}, initialisation)) : Argument::none();
  shape.back() = out;
  const ValueId output = layer.call("aten::linear", {Argument::of(layer.input()), weight, offset}, shape);
  PythonModule module{"nn.Linear", {std::to_string(in), std::to_string(out)}};
  module.keyword("bias", python_text(bias), "True");
  return {output, module};
}

BuiltLayer build_embedding(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  if (layer.graph().value(layer.input()).type != at::kLong) {
    layer.fail(fmt::format("expected indices (an int64 input of the data set), found floating-point numbers {}",
                           layer.found(layer.input())));
  }
  const int64_t count = options.integer("count");
  const int64_t dim = options.integer("dim");
  const int64_t padding = options.is_word("padding_idx", "none") ? -1 : options.integer("padding_idx");
  if (padding >= count) {
    layer.fail(fmt::format("the key `padding_idx`: expected an index below `count` ({}), found {}", count, padding));
  }
  Initialisation initialisation{Initialisation::Kind::kNormal, 0, 1};
  initialisation.zero_row = padding;
  const ValueId weight = layer.parameter("weight", {count, dim}, initialisation);
  std::vector<int64_t> shape = layer.any_shape();
  shape.push_back(dim);
  const ValueId output = layer.call("aten::embedding",
                                    {Argument::of(weight), Argument::of(layer.input()), Argument::fixed(padding),
                                     Argument::fixed(false), Argument::fixed(false)},
                                    shape);
  PythonModule module{"nn.Embedding", {std::to_string(count), std::to_string(dim)}};
  module.keyword("padding_idx", std::to_string(padding), "-1");
  return {output, module};
}

}  // namespace

std::vector<LayerEntry> linear_layers() {
  return {
      {{"linear",
        "out",
        {{"out", "int >= 1", "", "number of output features"},
         {"bias", "bool", "true", "add a learned offset"},
         {"each_position", "bool", "false", "accept [..., features] and apply the layer to the last dimension"}},
        "y = x W^T + b of an input [features]"},
       build_linear},
      {{"embedding",
        "",
        {{"count", "int >= 1", "", "number of rows of the table: indices are below it"},
         {"dim", "int >= 1", "", "length of a row"},
         {"padding_idx", "int >= 0 or none", "none", "index whose row begins as zero and is not trained"}},
        "the rows of a learned table that the input's indices name"},
       build_embedding},
  };
}

}  // namespace tutti::graph
