// A run on the meta device of the nodes that decide how memory lies.
#include "src/program/layouts.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "src/graph/number_function.h"
#include "src/graph/operator_call.h"

namespace tutti::program {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueKind;

constexpr int64_t kSampleRows = 2;

/// A contiguous tensor without data.
at::Tensor plain(const graph::Value& value, int64_t rows) {
  std::vector<int64_t> sizes = value.shape;
  for (int64_t& size : sizes) size = graph::size_at(size, rows);
  return at::empty(sizes, at::TensorOptions(value.type).device(at::kMeta));
}

/// Operators whose schema does not say that they may return their argument.
constexpr std::array<std::string_view, 4> kMayReturnArgument{"aten::type_as", "aten::dropout",
                                                             "aten::broadcast_tensors", "aten::meshgrid"};

bool makes_numbers(const Graph& graph, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return id != kNoValue && graph.values[id].kind == ValueKind::kNumber; });
}

/// True where a result is, or may be, the memory of an argument.
bool returns_argument(const Node& node, const c10::FunctionSchema& schema) {
  const auto& results = schema.returns();
  return std::any_of(results.begin(), results.end(),
                     [](const c10::Argument& result) { return result.alias_info() != nullptr; }) ||
         std::find(kMayReturnArgument.begin(), kMayReturnArgument.end(), node.target) != kMayReturnArgument.end();
}

/// Runs the node on tensors without data; false where it has no form for them.
bool runs(const Node& node, std::vector<at::Tensor>& samples) {
  try {
    graph::OperatorCall{node}(samples, /*training=*/true);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Layouts::Layouts(const Graph& graph) : samples_(graph.values.size()) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const int64_t rows = graph.fixed_batch.value_or(kSampleRows);
  for (size_t id = 0; id < samples_.size(); ++id) {
    if (!graph.values[id].is_computed()) samples_[id] = plain(graph.values[id], rows);
  }
  for (const Node& node : graph.nodes) {
    sample(graph, node);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue && !samples_[id].defined()) samples_[id] = plain(graph.values[id], rows);
    }
  }
}

void Layouts::sample(const Graph& graph, const Node& node) {
  if (makes_numbers(graph, node)) {
    runs(node, samples_);
    return;
  }
  const auto handle = c10::Dispatcher::singleton().findSchema({node.target, node.overload});
  if (!handle) return;
  const bool is_alias = returns_argument(node, handle->schema());
  if ((!is_alias && !handle->hasTag(at::Tag::pointwise)) || runs(node, samples_) || !is_alias) return;
  const std::vector<ValueId>& first = node.arguments.front().ids;
  if (first.empty() || first.front() == kNoValue) return;
  for (const ValueId id : node.outputs) {
    if (id != kNoValue) samples_[id] = samples_[first.front()];
  }
}

bool Layouts::share(ValueId one, ValueId other) const {
  const at::Tensor &first = samples_[one], &second = samples_[other];
  return first.defined() && second.defined() && first.storage().is_alias_of(second.storage());
}

}  // namespace tutti::program
