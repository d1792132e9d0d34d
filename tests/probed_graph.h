// Graphs with numbers, buffers and nodes of several results, whose shapes are found by probing: for tests of imported
// models' programs.
#ifndef TUTTI_TESTS_PROBED_GRAPH_H
#define TUTTI_TESTS_PROBED_GRAPH_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node_graph.h"
#include "src/graph/shape_probe.h"

namespace tutti::testing {

using ValueIds = std::vector<ValueId>;

/// Builds a graph with numbers and nodes of several results. Shapes and types are found by probing two batch sizes.
class ProbedGraph {
 public:
  ValueId input(const std::vector<int64_t>& row_shape, at::ScalarType type = at::kFloat) {
    const ValueId id = add(graph::ValueKind::kInput, type, graph::kBatch);
    graph_.values[id].shape.insert(graph_.values[id].shape.end(), row_shape.begin(), row_shape.end());
    graph_.inputs.push_back(id);
    return id;
  }
  ValueId parameter(const at::Tensor& initial) {
    const ValueId id = add(graph::ValueKind::kParameter, at::kFloat);
    graph_.values[id].shape = initial.sizes().vec();
    graph::Parameter parameter;
    parameter.value = id;
    parameter.name = "parameter" + std::to_string(graph_.parameters.size());
    parameter.initial = initial.to(at::kFloat);
    graph_.parameters.push_back(std::move(parameter));
    return id;
  }
  ValueId constant(const at::Tensor& tensor) {
    const ValueId id = add(graph::ValueKind::kConstant, tensor.scalar_type());
    graph_.values[id].shape = tensor.sizes().vec();
    graph_.constants.push_back({id, tensor});
    return id;
  }
  ValueId buffer(const at::Tensor& initial) {
    const ValueId id = add(graph::ValueKind::kBuffer, initial.scalar_type());
    graph_.values[id].shape = initial.sizes().vec();
    graph_.buffers.push_back({id, "buffer" + std::to_string(graph_.buffers.size()), initial, true});
    return id;
  }
  ValueIds call_several(const std::string& target, const std::string& overload, std::vector<Argument> arguments,
                        int64_t count) {
    ValueIds outputs;
    for (int64_t i = 0; i < count; ++i) outputs.push_back(add(graph::ValueKind::kResult, at::kFloat));
    graph_.nodes.push_back(
        {target, overload, std::move(arguments), outputs, "node " + std::to_string(graph_.nodes.size())});
    return outputs;
  }
  ValueId call(const std::string& target, const std::string& overload, std::vector<Argument> arguments) {
    return call_several(target, overload, std::move(arguments), 1).front();
  }
  ValueId number(const std::string& target, const std::string& overload, std::vector<Argument> arguments) {
    const ValueId id = call(target, overload, std::move(arguments));
    graph_.values[id].kind = graph::ValueKind::kNumber;
    return id;
  }
  /// The batch size as a number of the graph.
  ValueId rows(ValueId value, int64_t dimension = 0) {
    return number("aten::sym_size", "int", {Argument::of(value), integer(dimension)});
  }
  graph::Graph& graph() { return graph_; }

  std::shared_ptr<const graph::Graph> finish(const ValueIds& outputs) {
    graph_.outputs = outputs;
    const std::vector<at::Tensor> one = graph::probe_shapes(graph_, 2), other = graph::probe_shapes(graph_, 3);
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      graph::Value& value = graph_.values[id];
      if (!value.is_computed() || !one[id].defined()) continue;
      value.type = one[id].scalar_type();
      if (value.kind == graph::ValueKind::kNumber) continue;
      for (int64_t d = 0; d < one[id].dim(); ++d) {
        const int64_t per_row = other[id].size(d) - one[id].size(d);
        value.shape.push_back(per_row == 0 ? one[id].size(d) : per_row * graph::kBatch);
      }
    }
    return std::make_shared<const graph::Graph>(graph_);
  }

 private:
  ValueId add(graph::ValueKind kind, at::ScalarType type, std::optional<int64_t> size = std::nullopt) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back({kind, "value" + std::to_string(id), type, {}});
    if (size) graph_.values.back().shape.push_back(*size);
    return id;
  }

  graph::Graph graph_;
};

/// One training step, with random gradients of the outputs, which are returned.
inline std::vector<at::Tensor> step(BoundModel& model, const at::Tensor& input) {
  model.forward({input});
  std::vector<at::Tensor> outputs;
  at::manual_seed(29);
  for (const ValueId id : model.program->graph().outputs) {
    outputs.push_back(model.frame.values[id].clone());
    const at::Tensor gradient = at::randn(outputs.back().sizes(), at::kDouble);
    model.frame.gradients[id] = gradient.to(outputs.back().scalar_type());
  }
  model.program->backward(model.frame);
  return outputs;
}

}  // namespace tutti::testing

#endif
