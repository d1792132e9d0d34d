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

/// The size of a dimension that is the batch. A size of k * kBatch is k times the batch.
inline constexpr int64_t kBatch = -1;

/// The size that stands in a shape, for a batch of `rows`.
constexpr int64_t size_at(int64_t size, int64_t rows) { return size < 0 ? size / kBatch * rows : size; }

enum class ValueKind {
  kInput,
  kParameter,
  kBuffer,
  kConstant,
  kResult,
  kNumber,  ///< made by a node, like a result; computed from shapes, such as the batch size
};

/// A tensor of the graph, or a number, which is held as a tensor of no dimensions.
struct Value {
  ValueKind kind = ValueKind::kResult;
  std::string name;
  at::ScalarType type = at::kFloat;  ///< kFloat stands for the program's own precision; a number: kLong, kDouble, kBool
  std::vector<int64_t> shape;        ///< with kBatch where the batch is

  /// True where a node makes the value.
  bool is_computed() const { return kind == ValueKind::kResult || kind == ValueKind::kNumber; }
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
  std::vector<std::string> other_names = {};  ///< further state-dict names of the same tensor (tied weights)
};

/// A tensor that running the graph changes (a running statistic) and that is saved with the model.
struct Buffer {
  ValueId value = kNoValue;
  std::string name;  ///< state-dict name
  at::Tensor initial;
  bool persistent = true;
  std::vector<std::string> other_names = {};  ///< further state-dict names of the same tensor
};

struct Constant {
  ValueId value = kNoValue;
  at::Tensor tensor;
};

/// One argument of a node: a value, a list of values, a list of numbers some of which are values, or a constant.
struct Argument {
  enum class Kind { kValue, kValues, kNumbers, kConstant };
  Kind kind = Kind::kConstant;
  std::vector<ValueId> ids;  ///< kNoValue where an optional tensor is none, or where a number is a constant
  c10::IValue constant;      ///< none, int, float, bool, string, list of ints...; kNumbers: a list as long as `ids`

  static Argument of(ValueId id) { return {Kind::kValue, {id}, {}}; }
  static Argument list(std::vector<ValueId> ids) { return {Kind::kValues, std::move(ids), {}}; }
  /// `numbers` holds a number for each id; it counts where the id is kNoValue.
  static Argument mixed(std::vector<ValueId> ids, c10::IValue numbers) {
    return {Kind::kNumbers, std::move(ids), std::move(numbers)};
  }
  static Argument fixed(c10::IValue constant) { return {Kind::kConstant, {}, std::move(constant)}; }
  /// An optional tensor that is absent.
  static Argument none() { return {Kind::kConstant, {}, {}}; }
};

/// One call of an ATen operator, or of a function of numbers (number_function.h). `arguments` holds every argument of
/// the operator's schema, in its order, defaults written out.
struct Node {
  std::string target;    ///< "aten::conv2d"; "_operator::mul" of two numbers
  std::string overload;  ///< "" or "Tensor", ...
  std::vector<Argument> arguments;
  std::vector<ValueId> outputs;  ///< one per result, or per element of a list; kNoValue where nobody needs it
  std::string label;             ///< where it comes from, for messages: "layers.3 conv2d"
};

/// "aten::conv2d", or "aten::add.Tensor" where there is an overload.
std::string operator_name(const Node& node);
/// What messages call a node: its label with the operator's name.
std::string described(const Node& node);

/// Nodes in an order in which they can run. The first dimension of every input and output is the batch.
struct Graph {
  std::vector<Value> values;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Constant> constants;
  std::vector<Node> nodes;
  std::optional<int64_t> fixed_batch;  ///< the only batch size that the graph can run with; none: every one

  /// A string that is equal for two graphs exactly when one compiled program can serve both: everything but names,
  /// labels and initial values.
  std::string signature() const;

  int64_t parameter_count() const;  ///< scalars in all parameters

  /// Multiply-adds times two that one sample costs forward; matrix products and convolutions only.
  double forward_flops_per_sample() const;
};

}  // namespace tutti::graph

#endif
