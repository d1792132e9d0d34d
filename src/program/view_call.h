// An operator that makes views of its first argument, applied to other tensors of that argument's shape.
#ifndef TUTTI_SRC_PROGRAM_VIEW_CALL_H
#define TUTTI_SRC_PROGRAM_VIEW_CALL_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "src/graph/operator_call.h"

namespace tutti::program {

/// What a node views in a value, it views in the value's gradient too. Immutable.
class ViewCall {
 public:
  /// Requires that the node's first argument is a value. Throws graph::GraphError where the node cannot be called.
  explicit ViewCall(const graph::Node& node);

  /// The views of `whole`, one per output of the node, wanted or not. `values` (by ValueId) holds the numbers.
  std::vector<at::Tensor> operator()(const at::Tensor& whole, std::span<const at::Tensor> values) const;

  /// What the node reads beside its first argument.
  const std::vector<graph::ValueId>& numbers() const { return numbers_; }

 private:
  /// The node on values of its own: the whole, the numbers, the views.
  graph::Node renumbered(graph::Node node);

  std::vector<graph::ValueId> numbers_;
  size_t view_count_;
  graph::OperatorCall call_;
};

}  // namespace tutti::program

#endif
