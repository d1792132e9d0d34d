// The layer list: the job file's `layers:` and zoo entries, turned into a graph or into Python.
#include "src/graph/layer_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/graph/layer_build.h"
#include "src/graph/layer_families.h"
#include "src/graph/python_classes.h"

namespace tutti::graph {
namespace {

struct BuiltList {
  Graph graph;
  PythonModule module;
  std::set<std::string> python_classes;
};

/// A zoo entry alone is the model itself, so its names have no index before them.
bool is_zoo_alone(const nlohmann::json& layers) {
  if (layers.size() != 1) return false;
  const nlohmann::json& layer = layers[0];
  const bool named = layer.is_string() || (layer.is_object() && layer.size() == 1);
  const LayerEntry* entry =
      named ? find_layer(layer.is_string() ? layer.get<std::string>() : layer.begin().key()) : nullptr;
  return entry != nullptr && entry->kind == LayerEntry::Kind::kZoo;
}

BuiltList build_list(const nlohmann::json& layers, const InputShape& input) {
  if (!layers.is_array() || layers.empty()) {
    throw LayerError("", "layers: expected a list of at least one layer, found " + layers.dump());
  }
  BuiltList list;
  GraphBuilder graph;
  const ValueId first = graph.add_input(input.name, input.shape, input.type);
  ListScope scope{&graph, &list.python_classes, "", "", ""};
  BuiltLayer built;
  if (is_zoo_alone(layers)) {
    scope.path = "0";
    built = build_layer(scope, layers[0], first);
  } else {
    built = build_sequence(scope, layers, first);
  }
  list.graph = graph.finish(built.output);
  list.module = std::move(built.module);
  return list;
}

}  // namespace

const std::vector<LayerEntry>& layer_entries() {
  static const std::vector<LayerEntry> entries = [] {
    std::vector<LayerEntry> all;
    for (const auto& family : {linear_layers(), convolution_layers(), pooling_layers(), normalisation_layers(),
                               activation_layers(), shape_layers(), blocks(), zoo()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return entries;
}

const LayerEntry* find_layer(const std::string& name) {
  const auto found =
      std::ranges::find_if(layer_entries(), [&](const LayerEntry& entry) { return entry.declaration.name == name; });
  return found == layer_entries().end() ? nullptr : &*found;
}

const std::vector<LayerDeclaration>& layer_declarations() {
  static const std::vector<LayerDeclaration> declarations = [] {
    std::vector<LayerDeclaration> all;
    for (const LayerEntry& entry : layer_entries()) all.push_back(entry.declaration);
    return all;
  }();
  return declarations;
}

Graph build_layer_list(const nlohmann::json& layers, const InputShape& input) {
  return build_list(layers, input).graph;
}

std::string python_source(const nlohmann::json& layers, const InputShape& input) {
  const BuiltList list = build_list(layers, input);
  std::string source =
      "\"\"\"The network of the weights beside this file.\n\n"
      "model = Model()\n"
      "model.load_state_dict(safetensors.torch.load_file('final/weights.safetensors'))\n"
      "\"\"\"\n"
      "import torch\n"
      "from torch import nn\n";
  for (const std::string& name : list.python_classes) source += fmt::format("\n\n{}", python_class(name));
  source += fmt::format(
      "\n\nclass Model({}):\n"
      "    \"\"\"Input: [batch{}{}], {}.\"\"\"\n\n"
      "    def __init__(self):\n"
      "        super().__init__(\n",
      list.module.type, input.shape.empty() ? "" : ", ", fmt::join(input.shape, ", "),
      input.type == at::kLong ? "int64" : "float");
  for (const std::string& argument : list.module.arguments) source += fmt::format("            {},\n", argument);
  return source + "        )\n";
}

}  // namespace tutti::graph
