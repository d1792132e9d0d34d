// The node's values are renumbered, so that a call needs no table of the graph's size.
#include "src/program/view_call.h"

#include <numeric>

namespace tutti::program {

using graph::ValueId;

ViewCall::ViewCall(const graph::Node& node) : view_count_(node.outputs.size()), call_(renumbered(node)) {}

graph::Node ViewCall::renumbered(graph::Node node) {
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    for (ValueId& id : node.arguments[i].ids) {
      if (id == graph::kNoValue) continue;
      if (i > 0) numbers_.push_back(id);
      id = static_cast<ValueId>(numbers_.size());
    }
  }
  std::iota(node.outputs.begin(), node.outputs.end(), static_cast<ValueId>(numbers_.size()) + 1);
  return node;
}

std::vector<at::Tensor> ViewCall::operator()(const at::Tensor& whole, std::span<const at::Tensor> values) const {
  std::vector<at::Tensor> table(1 + numbers_.size() + view_count_);
  table[0] = whole;
  for (size_t i = 0; i < numbers_.size(); ++i) table[1 + i] = values[numbers_[i]];
  call_(table, /*training=*/true);
  table.erase(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(1 + numbers_.size()));
  return table;
}

}  // namespace tutti::program
