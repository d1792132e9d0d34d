// Blocks: layers made of lists of layers.
#include <fmt/format.h>

#include "src/graph/layer_families.h"

namespace tutti::graph {
namespace {

BuiltLayer build_residual(LayerBuild& layer) {
  layer.expect_float();
  const nlohmann::json& body_layers = layer.options().json("body");
  const nlohmann::json& shortcut_layers = layer.options().json("shortcut");
  const BuiltLayer body = build_sequence(layer.member("body"), body_layers, layer.input());
  const BuiltLayer shortcut = build_sequence(layer.member("shortcut"), shortcut_layers, layer.input());
  const std::vector<int64_t> body_shape = sample_shape(layer.graph().value(body.output));
  if (body_shape != sample_shape(layer.graph().value(shortcut.output))) {
    layer.fail(
        fmt::format("expected body and shortcut to end in one shape, found {} and {}; give a `shortcut` (a 1x1 "
                    "convolution, say) that ends in {}",
                    layer.found(body.output), layer.found(shortcut.output), text_of(body_shape)));
  }
  layer.scope().python_classes->insert("Residual");
  return {layer.graph().add_sum(body.output, shortcut.output, layer.label()),
          {"Residual", {body.module.text(), shortcut.module.text()}}};
}

/// The joined shape of the paths. Throws LayerError where they do not fit.
std::vector<int64_t> joined_shape(const LayerBuild& layer, const std::vector<std::vector<int64_t>>& shapes) {
  const bool concat = layer.options().string("join") == "concat";
  const int64_t dim = layer.options().integer("dim");
  if (concat && dim > std::ssize(shapes[0])) {
    layer.fail(fmt::format("the key `dim`: expected 1 to {} (0 is the batch), found {}", shapes[0].size(), dim));
  }
  std::vector<int64_t> joined = shapes[0];
  const auto along = static_cast<size_t>(dim - 1);
  for (size_t i = 1; i < shapes.size(); ++i) {
    std::vector<int64_t> expected = shapes[0];
    if (concat && shapes[i].size() == expected.size()) expected[along] = shapes[i][along];
    if (shapes[i] != expected) {
      layer.fail(fmt::format("expected all paths to end in one shape{}, found {} (path 0) and {} (path {})",
                             concat ? fmt::format(" but for dimension {}", dim) : "", text_of(shapes[0]),
                             text_of(shapes[i]), i));
    }
    if (concat) joined[along] += shapes[i][along];
  }
  return joined;
}

BuiltLayer build_branches(LayerBuild& layer) {
  layer.expect_float();
  const LayerOptions& options = layer.options();
  const std::string join = options.string("join");
  std::vector<ValueId> outputs;
  std::vector<std::vector<int64_t>> shapes;
  PythonModule module{"Branches", {}};
  for (const nlohmann::json& path : options.json("paths")) {
    const ListScope scope = layer.member("paths").member(std::to_string(outputs.size()));
    const BuiltLayer built = build_sequence(scope, path, layer.input());
    outputs.push_back(built.output);
    shapes.push_back(sample_shape(layer.graph().value(built.output)));
    module.arguments.push_back(built.module.text());
  }
  const std::vector<int64_t> shape = joined_shape(layer, shapes);
  module.arguments.push_back("join='" + join + "'");
  module.keyword("dim", std::to_string(options.integer("dim")), "1");
  layer.scope().python_classes->insert("Branches");
  if (join == "concat") {
    return {layer.call("aten::cat", {Argument::list(outputs), Argument::fixed(options.integer("dim"))}, shape), module};
  }
  ValueId sum = outputs[0];
  for (size_t i = 1; i < outputs.size(); ++i) sum = layer.graph().add_sum(sum, outputs[i], layer.label());
  return {sum, module};
}

}  // namespace

std::vector<LayerEntry> blocks() {
  return {
      {{"residual",
        "body",
        {{"body", "list of layers", "", "the layers beside the shortcut"},
         {"shortcut", "list of layers", "[]", "the layers of the shortcut; none: the input itself"}},
        "the sum of what body and shortcut make of the input"},
       build_residual,
       LayerEntry::Kind::kBlock},
      {{"branches",
        "paths",
        {{"paths", "list of lists of layers", "", "the layers of each path"},
         {"join", "concat or add", "concat", "how the paths' results become one"},
         {"dim", "int >= 1", "1", "dimension along which `concat` joins; 1 is the channels"}},
        "several paths from one input, joined"},
       build_branches,
       LayerEntry::Kind::kBlock},
  };
}

}  // namespace tutti::graph
