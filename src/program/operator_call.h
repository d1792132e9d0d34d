// One call of any ATen operator by its schema, through the dispatcher.
#ifndef TUTTI_SRC_PROGRAM_OPERATOR_CALL_H
#define TUTTI_SRC_PROGRAM_OPERATOR_CALL_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::program {

/// A node's operator with its arguments, ready to be called. Immutable; any number of threads may call it.
class OperatorCall {
 public:
  /// Throws graph::GraphError where the operator is unknown to LibTorch or the arguments do not fit its schema.
  explicit OperatorCall(const graph::Node& node);

  /// Reads the arguments from `values` (by ValueId) and stores the results there. In evaluation (`training` false) a
  /// training flag that is true is passed as false, unless the operator has no running statistics to use instead.
  void operator()(std::span<at::Tensor> values, bool training) const;

  /// The values that the operator writes in place.
  const std::vector<graph::ValueId>& mutated_values() const { return mutated_values_; }

  /// True where the operator draws random numbers in training with these arguments.
  bool is_random() const { return is_random_; }

  /// True where the arguments ask for the behaviour of training (a flag `train`, `training`, `use_input_stats`).
  bool has_training_flag() const { return training_flag_.has_value(); }

 private:
  void check_arguments() const;
  void normalise_constant(size_t position);
  void find_training_flag();
  void find_mutated_values();
  bool draws_random_numbers() const;

  graph::Node node_;
  c10::OperatorHandle operator_;
  std::optional<size_t> training_flag_;  ///< position of a flag that evaluation turns off
  std::vector<graph::ValueId> mutated_values_;
  bool is_random_ = false;
};

}  // namespace tutti::program

#endif
