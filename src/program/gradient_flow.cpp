// Forward from the parameters and backward from the outputs; what both reach is differentiated.
#include "src/program/gradient_flow.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tutti::program {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

constexpr std::array<std::string_view, 9> kWithoutGradient{"aten::detach",    "aten::zeros_like", "aten::ones_like",
                                                           "aten::full_like", "aten::empty_like", "aten::new_zeros",
                                                           "aten::new_ones",  "aten::new_full",   "aten::new_empty"};

/// What their second argument holds does not matter.
constexpr std::array<std::string_view, 5> kOfFirstArgument{"aten::expand_as", "aten::view_as", "aten::reshape_as",
                                                           "aten::type_as", "aten::to"};

template <size_t count>
bool holds(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

size_t differentiable_arguments(const Node& node) {
  if (holds(kWithoutGradient, node.target)) return 0;
  return holds(kOfFirstArgument, node.target) ? std::min<size_t>(1, node.arguments.size()) : node.arguments.size();
}

template <typename Visit>
void for_each_differentiable_input(const Node& node, Visit visit) {
  for (size_t i = 0; i < differentiable_arguments(node); ++i) {
    for (const ValueId id : node.arguments[i].ids) {
      if (id != kNoValue) visit(id);
    }
  }
}

bool can_have_gradient(at::ScalarType type) { return c10::isFloatingType(type) || c10::isComplexType(type); }

}  // namespace

ValueSet dependent_values(const Graph& graph) {
  ValueSet depends(graph.values.size());
  for (const graph::Parameter& parameter : graph.parameters) depends[parameter.value] = parameter.trainable;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for_each_differentiable_input(node, [&](ValueId id) { any = any || depends[id]; });
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) depends[id] = any && can_have_gradient(graph.values[id].type);
    }
  }
  return depends;
}

ValueSet differentiated_values(const Graph& graph) {
  const ValueSet depends = dependent_values(graph);
  ValueSet influences(graph.values.size());
  for (const ValueId id : graph.outputs) influences[id] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool any = std::any_of(node->outputs.begin(), node->outputs.end(),
                                 [&](ValueId id) { return id != kNoValue && influences[id] && depends[id]; });
    if (any) for_each_differentiable_input(*node, [&](ValueId id) { influences[id] = true; });
  }
  ValueSet both(graph.values.size());
  for (size_t id = 0; id < both.size(); ++id) both[id] = depends[id] && influences[id];
  return both;
}

ValueSet differentiated_ends(const Graph& graph) {
  ValueSet ends(graph.values.size());
  for (const graph::Parameter& parameter : graph.parameters) ends[parameter.value] = parameter.trainable;
  for (const ValueId id : graph.outputs) ends[id] = can_have_gradient(graph.values[id].type);
  return ends;
}

bool passes_gradient(const Node& node, ValueId value) {
  bool found = false;
  for_each_differentiable_input(node, [&](ValueId id) { found = found || id == value; });
  return found;
}

}  // namespace tutti::program
