// Types of a node's arguments and results.
#include "src/program/value_type.h"

#include <algorithm>

namespace tutti::program {

bool has_one_real_type(const graph::Graph& graph, const graph::Node& node) {
  const auto wanted =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](graph::ValueId id) { return id != graph::kNoValue; });
  if (wanted == node.outputs.end()) return false;
  const at::ScalarType result = graph.values[*wanted].type;
  bool has_operand = false;
  for (const graph::Argument& argument : node.arguments) {
    for (const graph::ValueId id : argument.ids) {
      if (id == graph::kNoValue || graph.values[id].kind == graph::ValueKind::kNumber) continue;
      const at::ScalarType type = graph.values[id].type;
      if (c10::isComplexType(type)) return false;
      if (!c10::isFloatingType(type)) continue;
      if (c10::isFloatingType(result) && type != result) return false;
      has_operand = true;
    }
  }
  return has_operand || c10::isIntegralType(result, /*includeBool=*/true);
}

bool keeps_type(const graph::Graph& graph, const graph::Node& node, size_t position) {
  const graph::Argument& argument = node.arguments.at(position);
  if (argument.kind != graph::Argument::Kind::kConstant) return false;
  const c10::IValue& constant = argument.constant;
  if (constant.isNone()) return true;
  const at::ScalarType type = graph.values[node.arguments.front().ids.front()].type;
  return constant.isInt() && constant.toInt() == static_cast<int64_t>(type) &&
         graph.values[node.outputs.front()].type == type;
}

}  // namespace tutti::program
