// Grows a graph node by node.
#include "src/graph/graph_builder.h"

#include <fmt/format.h>

#include <utility>

namespace tutti::graph {

std::vector<int64_t> batched(const std::vector<int64_t>& sample_shape) {
  std::vector<int64_t> shape = {kBatch};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  return shape;
}

std::vector<int64_t> sample_shape(const Value& value) { return {value.shape.begin() + 1, value.shape.end()}; }

ValueId GraphBuilder::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return std::ssize(graph_.values) - 1;
}

ValueId GraphBuilder::add_input(std::string name, const std::vector<int64_t>& shape, at::ScalarType type) {
  const ValueId id = add_value({ValueKind::kInput, std::move(name), type, batched(shape)});
  graph_.inputs.push_back(id);
  return id;
}

ValueId GraphBuilder::add_parameter(std::string name, std::vector<int64_t> shape,
                                    const Initialisation& initialisation) {
  const ValueId id = add_value({ValueKind::kParameter, name, at::kFloat, std::move(shape)});
  graph_.parameters.push_back({id, std::move(name), initialisation, std::nullopt, true});
  return id;
}

ValueId GraphBuilder::add_buffer(std::string name, at::Tensor initial) {
  const ValueId id = add_value({ValueKind::kBuffer, name, initial.scalar_type(), initial.sizes().vec()});
  graph_.buffers.push_back({id, std::move(name), std::move(initial), true});
  return id;
}

ValueId GraphBuilder::add_node(Call call, std::string label) {
  const std::string_view name = call.operator_name;
  const size_t dot = name.find('.');
  Node node;
  node.target = name.substr(0, dot);
  if (dot != std::string_view::npos) node.overload = name.substr(dot + 1);
  node.arguments = std::move(call.arguments);
  node.label = std::move(label);
  const std::string result = fmt::format("{}_{}", node.target.substr(node.target.find("::") + 2), graph_.nodes.size());
  const ValueId id = add_value({ValueKind::kResult, result, call.type, std::move(call.shape)});
  node.outputs = {id};
  graph_.nodes.push_back(std::move(node));
  return id;
}

ValueId GraphBuilder::add_sum(ValueId left, ValueId right, std::string label) {
  return add_node(
      {"aten::add.Tensor", {Argument::of(left), Argument::of(right), Argument::fixed(1)}, value(left).shape},
      std::move(label));
}

std::string GraphBuilder::origin(ValueId id) const {
  for (const Node& node : graph_.nodes) {
    if (node.outputs.front() == id) return node.label;
  }
  return "the input " + value(id).name;
}

Graph GraphBuilder::finish(ValueId output) {
  graph_.outputs = {output};
  return std::exchange(graph_, {});
}

}  // namespace tutti::graph
