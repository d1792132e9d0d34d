// Structures from arguments.
#include "src/program/recurrent_structure.h"

#include <algorithm>
#include <string_view>

#include "src/program/recurrent.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using graph::ValueId;

/// "lstm" of aten::lstm and aten::lstm_cell.
const RecurrentCell* cell_of(const graph::Node& node) {
  std::string_view name = node.target;
  name.remove_prefix(std::string_view("aten::").size());
  if (name.ends_with("_cell")) name.remove_suffix(std::string_view("_cell").size());
  return RecurrentCell::find(name);
}

std::vector<RecurrentWeight> listed(const NodeContext& context, size_t argument) {
  if (context.node().arguments[argument].kind == graph::Argument::Kind::kValue) {
    return {{context.value(argument), context.target(argument)}};
  }
  std::vector<RecurrentWeight> list;
  const std::vector<ValueId> ids = context.values(argument);
  for (size_t i = 0; i < ids.size(); ++i) list.push_back({ids[i], context.targets(argument)[i]});
  return list;
}

int64_t values_in(const graph::Argument& argument) { return std::ssize(argument.ids); }

int64_t state_count(const graph::Node& node) { return cell_of(node)->has_cell_state() ? 2 : 1; }

}  // namespace

RecurrentStructure structure_of_layers(const NodeContext& context) {
  RecurrentStructure structure;
  structure.cell = cell_of(context.node());
  structure.form = context.flag(8) ? RecurrentStructure::Form::kRowsFirst : RecurrentStructure::Form::kTimesFirst;
  structure.layers = context.integer(4);
  structure.directions = context.flag(7) ? 2 : 1;
  structure.states = listed(context, 1);
  const std::vector<RecurrentWeight> weights = listed(context, 2);
  const size_t each = context.flag(3) ? 4 : 2;
  for (size_t first = 0; first < weights.size(); first += each) {
    std::array<RecurrentWeight, 4>& direction = structure.weights.emplace_back();
    std::copy_n(weights.begin() + static_cast<int64_t>(first), each, direction.begin());
  }
  const std::vector<ValueId>& outputs = context.node().outputs;
  structure.output = outputs.front();
  structure.last_states.assign(outputs.begin() + 1, outputs.end());
  if (context.flag(6) && context.number(5) > 0 && structure.layers > 1) {
    std::vector<int64_t> shape = context.shape(context.value(0));
    if (structure.form == RecurrentStructure::Form::kRowsFirst) std::swap(shape[0], shape[1]);
    shape.insert(shape.begin(), structure.layers - 1);
    structure.dropout = dropout_site(context.node(), context.index(), 5, shape);
  }
  return structure;
}

RecurrentStructure structure_of_cell(const NodeContext& context) {
  RecurrentStructure structure;
  structure.cell = cell_of(context.node());
  structure.form = RecurrentStructure::Form::kStep;
  structure.states = listed(context, 1);
  std::array<RecurrentWeight, 4>& weights = structure.weights.emplace_back();
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = {context.value(2 + i), context.target(2 + i)};
  structure.last_states = context.node().outputs;
  return structure;
}

bool recurrent_layers_have_instruction(const graph::Graph& graph, const graph::Node& node) {
  const bool has_constants = std::all_of(node.arguments.begin() + 3, node.arguments.end(), [](const auto& argument) {
    return argument.kind == graph::Argument::Kind::kConstant;
  });
  if (!has_constants || !has_one_real_type(graph, node)) return false;
  const int64_t stack = node.arguments[4].constant.toInt() * (node.arguments[7].constant.toBool() ? 2 : 1);
  const int64_t each = node.arguments[3].constant.toBool() ? 4 : 2;
  return values_in(node.arguments[1]) == state_count(node) && values_in(node.arguments[2]) == stack * each &&
         std::ssize(node.outputs) == 1 + state_count(node) &&
         graph.values[node.arguments[0].ids.front()].shape.size() == 3;
}

bool recurrent_cell_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return has_one_real_type(graph, node) && values_in(node.arguments[1]) == state_count(node) &&
         values_in(node.arguments[4]) == values_in(node.arguments[5]) &&
         std::ssize(node.outputs) == state_count(node) && graph.values[node.arguments[0].ids.front()].shape.size() == 2;
}

}  // namespace tutti::program
