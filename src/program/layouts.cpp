// A run on the meta device of the nodes that decide how memory lies.
#include "src/program/layouts.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>

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

bool makes_numbers(const Graph& graph, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return id != kNoValue && graph.values[id].kind == ValueKind::kNumber; });
}

/// True for views, elementwise operators and what makes the numbers in their arguments.
bool decides_layout(const Graph& graph, const Node& node) {
  if (makes_numbers(graph, node)) return true;
  const auto handle = c10::Dispatcher::singleton().findSchema({node.target, node.overload});
  if (!handle) return false;
  const auto& results = handle->schema().returns();
  const bool is_view = std::any_of(results.begin(), results.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
  return is_view || handle->hasTag(at::Tag::pointwise);
}

void run(const Node& node, std::vector<at::Tensor>& samples) {
  try {
    graph::OperatorCall{node}(samples, /*training=*/true);
  } catch (const std::exception&) {
    // The operator has no form for tensors without data.
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
    if (decides_layout(graph, node)) run(node, samples_);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue && !samples_[id].defined()) samples_[id] = plain(graph.values[id], rows);
    }
  }
}

bool Layouts::share(ValueId one, ValueId other) const {
  return samples_[one].storage().is_alias_of(samples_[other].storage());
}

}  // namespace tutti::program
