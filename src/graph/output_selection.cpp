// Two walks from the outputs back: over all values, and over those that carry a gradient.
#include "src/graph/output_selection.h"

#include <utility>

#include "src/graph/operator_call.h"

namespace tutti::graph {
namespace {

template <typename Visit>
void for_each_input(const Node& node, Visit visit) {
  for (const Argument& argument : node.arguments) {
    for (const ValueId id : argument.ids) {
      if (id != kNoValue) visit(id);
    }
  }
}

bool makes_any(const Node& node, const std::vector<bool>& values) {
  for (const ValueId id : node.outputs) {
    if (id != kNoValue && values[id]) return true;
  }
  return false;
}

/// True where a node changes a tensor: in place, or as running statistics, which the schema does not tell.
bool has_effect(const Node& node) {
  if (NumberFunction::find(node.target) != nullptr) return false;
  const OperatorCall call(node);
  if (!call.mutated_values().empty()) return true;
  const std::optional<int> statistics = call.schema().argumentIndexWithName("running_mean");
  return statistics && !node.arguments[*statistics].ids.empty() && call.has_training_flag();
}

void drop_unneeded_nodes(Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (const ValueId id : graph.outputs) needed[id] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!makes_any(*node, needed) && !has_effect(*node)) continue;
    for_each_input(*node, [&](ValueId id) { needed[id] = true; });
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

void freeze_unreached_parameters(Graph& graph) {
  std::vector<bool> reached(graph.values.size());
  for (const ValueId id : graph.outputs) reached[id] = true;
  const auto carries = [&](ValueId id) {
    const at::ScalarType type = graph.values[id].type;
    return graph.values[id].kind != ValueKind::kNumber && (at::isFloatingType(type) || at::isComplexType(type));
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->target == "aten::detach" || !makes_any(*node, reached)) continue;
    for_each_input(*node, [&](ValueId id) { reached[id] = reached[id] || carries(id); });
  }
  for (Parameter& parameter : graph.parameters) {
    parameter.trainable = parameter.trainable && reached[parameter.value];
  }
}

}  // namespace

void select_outputs(Graph& graph, std::vector<ValueId> outputs) {
  graph.outputs = std::move(outputs);
  drop_unneeded_nodes(graph);
  freeze_unreached_parameters(graph);
}

}  // namespace tutti::graph
