// Node by node on the meta device; on the CPU where there is no meta kernel.
#include "src/graph/shape_probe.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>
#include <fmt/format.h>

#include <algorithm>

#include "src/graph/operator_call.h"

namespace tutti::graph {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Bytes that one operator's arguments may take where it has to run on the CPU.
constexpr int64_t kMaxCpuBytes = int64_t{4} << 30;

bool takes_tensors(const Node& node, const Tensors& values) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [&](const Argument& argument) {
    return std::any_of(argument.ids.begin(), argument.ids.end(),
                       [&](ValueId id) { return id != kNoValue && values[id].is_meta(); });
  });
}

/// The node with every device that it names replaced. An operator that makes a tensor from nothing gets one.
Node on_device(Node node, const c10::FunctionSchema& schema, c10::DeviceType device, bool takes_tensors) {
  for (size_t i = 0; i < node.arguments.size() && i < schema.arguments().size(); ++i) {
    Argument& argument = node.arguments[i];
    if (argument.kind != Argument::Kind::kConstant) continue;
    const bool makes = !takes_tensors && schema.arguments()[i].name() == "device" && argument.constant.isNone();
    if (makes || argument.constant.isDevice()) argument.constant = c10::Device(device);
  }
  return node;
}

/// Refuses operators whose result has a shape that depends on what their arguments hold.
void check_data_independence(const Node& node, const Tensors& values) {
  if (NumberFunction::find(node.target) != nullptr) return;
  const c10::OperatorHandle handle = find_operator(node);
  bool depends = handle.hasTag(at::Tag::data_dependent_output) || handle.hasTag(at::Tag::dynamic_output_shape);
  if (node.target == "aten::index" || node.target == "aten::index_put" || node.target == "aten::index_put_") {
    const std::vector<ValueId>& indices = node.arguments.at(1).ids;
    depends =
        node.target == "aten::index" && std::any_of(indices.begin(), indices.end(), [&](ValueId id) {
          return id != kNoValue && (values[id].scalar_type() == at::kBool || values[id].scalar_type() == at::kByte);
        });
  }
  if (depends) {
    throw GraphError(
        fmt::format("{}: the shape of its result depends on the data, not on the batch size alone. Write "
                    "the model without it (masks in place of selections).",
                    described(node)));
  }
}

/// Runs a node on the CPU with zeros in place of the arguments' values.
class CpuRun {
 public:
  explicit CpuRun(const Tensors& values) : meta_(values), cpu_(values.size()) {}

  void operator()(const Node& node, Tensors& values) {
    for (const Argument& argument : node.arguments) {
      for (const ValueId id : argument.ids) {
        if (id != kNoValue && !cpu_[id].defined()) materialise(id);
      }
    }
    OperatorCall{node}(cpu_, /*training=*/true);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) values[id] = to_meta(cpu_[id], node);
    }
  }

 private:
  void materialise(ValueId id) {
    const at::Tensor& value = meta_[id];
    if (!value.is_meta()) {
      cpu_[id] = value;
      return;
    }
    const auto storage_bytes = static_cast<int64_t>(value.storage().nbytes());
    bytes_ += storage_bytes;
    if (bytes_ > kMaxCpuBytes) throw GraphError(fmt::format("its arguments take {} bytes", bytes_));
    const int64_t elements = storage_bytes / static_cast<int64_t>(value.element_size());
    cpu_[id] =
        at::zeros({elements}, value.scalar_type()).as_strided(value.sizes(), value.strides(), value.storage_offset());
  }

  /// Aliases stay aliases.
  at::Tensor to_meta(const at::Tensor& result, const Node& node) const {
    if (!result.defined()) return result;
    for (const Argument& argument : node.arguments) {
      for (const ValueId id : argument.ids) {
        if (id == kNoValue || !meta_[id].is_meta()) continue;
        if (result.is_same(cpu_[id])) return meta_[id];
        if (result.storage().is_alias_of(cpu_[id].storage())) {
          return meta_[id].as_strided(result.sizes(), result.strides(), result.storage_offset());
        }
      }
    }
    return at::empty_strided(result.sizes(), result.strides(), result.options().device(at::kMeta));
  }

  const Tensors& meta_;
  Tensors cpu_;
  int64_t bytes_ = 0;
};

void run_node(const Node& node, Tensors& values) {
  check_data_independence(node, values);
  const bool is_number = NumberFunction::find(node.target) != nullptr;
  if (is_number) return OperatorCall{node}(values, /*training=*/true);
  const c10::FunctionSchema& schema = find_operator(node).schema();
  const bool has_tensors = takes_tensors(node, values);
  try {
    OperatorCall{on_device(node, schema, at::kMeta, has_tensors)}(values, /*training=*/true);
  } catch (const c10::Error&) {
    const Tensors before = values;
    CpuRun{before}(on_device(node, schema, at::kCPU, has_tensors), values);
  }
}

}  // namespace

void probe_node(const Node& node, Tensors& values) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  try {
    run_node(node, values);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue && !values[id].defined()) {
        throw GraphError(fmt::format("{}: the operator returned fewer results than the archive says", described(node)));
      }
    }
  } catch (const c10::Error& error) {
    throw GraphError(fmt::format("{}: {}", described(node), error.what_without_backtrace()));
  }
}

Tensors probe_shapes(const Graph& graph, int64_t rows) {
  Tensors values(graph.values.size());
  try {
    for (size_t id = 0; id < values.size(); ++id) {
      const Value& value = graph.values[id];
      if (value.is_computed()) continue;
      std::vector<int64_t> sizes = value.shape;
      for (int64_t& size : sizes) size = size_at(size, rows);
      values[id] = at::empty(sizes, at::TensorOptions(value.type).device(at::kMeta));
    }
    for (const Parameter& parameter : graph.parameters) {
      if (parameter.initial) {
        values[parameter.value] = at::empty_strided(parameter.initial->sizes(), parameter.initial->strides(),
                                                    parameter.initial->options().device(at::kMeta));
      }
    }
  } catch (const c10::Error& error) {
    throw GraphError(fmt::format("the graph's inputs: {}", error.what_without_backtrace()));
  }
  for (const Node& node : graph.nodes) probe_node(node, values);
  return values;
}

}  // namespace tutti::graph
