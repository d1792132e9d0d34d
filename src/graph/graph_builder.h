// Grows a graph node by node.
#ifndef TUTTI_SRC_GRAPH_GRAPH_BUILDER_H
#define TUTTI_SRC_GRAPH_GRAPH_BUILDER_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// A call that is to become a node with one result.
struct Call {
  std::string_view operator_name;   ///< with its overload: "aten::add.Tensor"
  std::vector<Argument> arguments;  ///< every argument of the schema, in its order
  std::vector<int64_t> shape;       ///< the result's, with kBatch where the batch is
  at::ScalarType type = at::kFloat;
};

/// The shape with the batch before it.
std::vector<int64_t> batched(const std::vector<int64_t>& sample_shape);
/// The shape without the batch.
std::vector<int64_t> sample_shape(const Value& value);

class GraphBuilder {
 public:
  /// `shape` is without the batch.
  ValueId add_input(std::string name, const std::vector<int64_t>& shape, at::ScalarType type);
  ValueId add_parameter(std::string name, std::vector<int64_t> shape, const Initialisation& initialisation);
  ValueId add_buffer(std::string name, at::Tensor initial);
  /// Appends a node; `label` says where it comes from. Returns its result.
  ValueId add_node(Call call, std::string label);

  /// Appends left + right, which have one shape.
  ValueId add_sum(ValueId left, ValueId right, std::string label);

  const Value& value(ValueId id) const { return graph_.values.at(static_cast<size_t>(id)); }
  /// The label of the node that computes the value, or "the input NAME".
  std::string origin(ValueId id) const;

  int64_t parameter_count() const { return std::ssize(graph_.parameters); }
  /// Parameters from number `first` on, to change how they begin.
  std::span<Parameter> parameters_from(int64_t first) {
    return std::span(graph_.parameters).subspan(static_cast<size_t>(first));
  }

  /// The finished graph; the builder is empty afterwards.
  Graph finish(ValueId output);

 private:
  ValueId add_value(Value value);

  Graph graph_;
};

}  // namespace tutti::graph

#endif
