// The graph: what a model is. Nodes are ATen operators; both front ends (layer list, .pt2 archive) end here.
#ifndef TUTTI_SRC_GRAPH_GRAPH_H
#define TUTTI_SRC_GRAPH_GRAPH_H

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::graph {

/// A fault in a description of a graph. The message names the layer, what was expected and what was found.
class GraphError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Index into Graph::values.
using ValueId = int64_t;
inline constexpr ValueId kNoValue = -1;

/// The size of a dimension that is the batch.
inline constexpr int64_t kBatch = -1;

enum class ValueKind { kInput, kParameter, kBuffer, kConstant, kResult };

/// A tensor of the graph.
struct Value {
  ValueKind kind = ValueKind::kResult;
  std::string name;
  at::ScalarType type = at::kFloat;  ///< kFloat stands for the program's own precision
  std::vector<int64_t> shape;        ///< with kBatch where the batch is
};

/// How a parameter begins: one number, or drawn from a distribution.
struct Initialisation {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double low = 0;         ///< constant: the value; uniform: the least; normal: the mean
  double high = 0;        ///< uniform: the greatest; normal: the standard deviation
  int64_t zero_row = -1;  ///< index along dimension 0 that begins as zeros (an embedding's padding); -1 = none
};

struct Parameter {
  ValueId value = kNoValue;
  std::string name;  ///< state-dict name
  Initialisation initialisation;
  std::optional<at::Tensor> initial;  ///< given values (an imported model's); overrides `initialisation`
  bool trainable = true;
};

/// A tensor that running the graph changes (a running statistic) and that is saved with the model.
struct Buffer {
  ValueId value = kNoValue;
  std::string name;  ///< state-dict name
  at::Tensor initial;
  bool persistent = true;
};

struct Constant {
  ValueId value = kNoValue;
  at::Tensor tensor;
};

/// One argument of a node: a value, a list of values, or a constant.
struct Argument {
  enum class Kind { kValue, kValues, kConstant };
  Kind kind = Kind::kConstant;
  std::vector<ValueId> ids;  ///< kNoValue where an optional tensor is none
  c10::IValue constant;      ///< none, int, float, bool, string, list of ints...

  static Argument of(ValueId id) { return {Kind::kValue, {id}, {}}; }
  static Argument list(std::vector<ValueId> ids) { return {Kind::kValues, std::move(ids), {}}; }
  static Argument fixed(c10::IValue constant) { return {Kind::kConstant, {}, std::move(constant)}; }
  /// An optional tensor that is absent.
  static Argument none() { return {Kind::kConstant, {}, {}}; }
};

/// One call of an ATen operator. `arguments` holds every argument of the operator's schema, in its order, defaults
/// written out.
struct Node {
  std::string target;    ///< "aten::conv2d"
  std::string overload;  ///< "" or "Tensor", ...
  std::vector<Argument> arguments;
  std::vector<ValueId> outputs;
  std::string label;  ///< where it comes from, for messages: "layers.3 conv2d"
};

/// Nodes in an order in which they can run. The first dimension of every input and output is the batch.
struct Graph {
  std::vector<Value> values;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Constant> constants;
  std::vector<Node> nodes;

  /// A string that is equal for two graphs exactly when one compiled program can serve both: everything but names,
  /// labels and initial values.
  std::string signature() const;

  int64_t parameter_count() const;  ///< scalars in all parameters

  /// Multiply-adds times two that one sample costs forward; matrix products and convolutions only.
  double forward_flops_per_sample() const;
};

}  // namespace tutti::graph

#endif
