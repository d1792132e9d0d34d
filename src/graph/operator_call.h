// One call of any ATen operator by its schema, through the dispatcher, or of a function of numbers.
#ifndef TUTTI_SRC_GRAPH_OPERATOR_CALL_H
#define TUTTI_SRC_GRAPH_OPERATOR_CALL_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/number_function.h"

namespace tutti::graph {

/// A number as a value of a graph: a tensor of no dimensions which does not widen the other operand's type.
at::Tensor number_tensor(const at::Scalar& number);

/// The operator that the node calls; the node's target is no function of numbers. Throws GraphError where LibTorch has
/// no such operator.
c10::OperatorHandle find_operator(const Node& node);

/// A node's operator with its arguments, ready to be called. Immutable; any number of threads may call it.
class OperatorCall {
 public:
  /// `precision` (kFloat or kDouble) is what the graph's kFloat stands for, in the node's arguments and in its results.
  /// Throws GraphError where the operator is unknown to LibTorch or the arguments do not fit its schema.
  explicit OperatorCall(const Node& node, at::ScalarType precision = at::kFloat);

  /// Reads the arguments from `values` (by ValueId) and stores the results there. In evaluation (`training` false) a
  /// training flag that is true is passed as false, unless the operator has no running statistics to use instead.
  void operator()(std::span<at::Tensor> values, bool training) const;

  /// The values that the operator writes in place.
  const std::vector<ValueId>& mutated_values() const { return mutated_values_; }

  /// True where the operator draws random numbers in training with these arguments.
  bool is_random() const { return is_random_; }

  /// True where the arguments ask for the behaviour of training (a flag `train`, `training`, `use_input_stats`).
  bool has_training_flag() const { return training_flag_.has_value(); }

  const c10::FunctionSchema& schema() const { return operator_ ? operator_->schema() : *number_schema_; }

 private:
  void check_arguments() const;
  void normalise_constant(size_t position);
  void find_training_flag();
  void find_mutated_values();
  bool draws_random_numbers() const;
  c10::IValue argument_value(size_t position, std::span<at::Tensor> values, bool training) const;
  void store(const c10::IValue& result, std::span<const ValueId> outputs, std::span<at::Tensor> values) const;

  Node node_;
  at::ScalarType precision_;
  std::optional<c10::OperatorHandle> operator_;  ///< none for a function of numbers
  const NumberFunction* function_ = nullptr;
  std::optional<c10::FunctionSchema> number_schema_;  ///< of the function of numbers
  std::optional<size_t> training_flag_;               ///< position of a flag that evaluation turns off
  std::vector<ValueId> mutated_values_;
  bool is_random_ = false;
};

}  // namespace tutti::graph

#endif
