// One function for each kind of kernel; argument positions are those of ATen's schemas.
#include "src/graph/composite_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tutti::graph {
namespace {

using Arguments = std::vector<Argument>;

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
void restore_convolution(Node& node) {
  Arguments& in = node.arguments;
  if (!in[3].constant.isIntList() || !in[6].constant.isBool()) return;
  const size_t dimensions = in[3].constant.toIntVector().size();
  if (dimensions < 1 || dimensions > 3) return;
  if (in[6].constant.toBool()) {
    node.target = fmt::format("aten::conv_transpose{}d", dimensions);
    node.overload = dimensions == 1 ? "" : "input";
    in = {in[0], in[1], in[2], in[3], in[4], in[7], in[8], in[5]};
  } else {
    node.target = fmt::format("aten::conv{}d", dimensions);
    in = {in[0], in[1], in[2], in[3], in[4], in[5], in[8]};
  }
}

/// native_layer_norm(input, normalized_shape, weight, bias, eps)
void restore_layer_norm(Node& node) {
  node.target = "aten::layer_norm";
  node.arguments.push_back(Argument::fixed(false));  // cudnn_enable
}

/// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
void restore_group_norm(Node& node) {
  node.target = "aten::group_norm";
  const Arguments& in = node.arguments;
  node.arguments = Arguments{in[0], in[6], in[1], in[2], in[7], Argument::fixed(false)};
}

/// _native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
void restore_batch_norm(Node& node) {
  node.target = "aten::batch_norm";
  node.overload.clear();
  const Arguments& in = node.arguments;
  node.arguments =
      Arguments{in[0], in[1], in[2], Argument::none(), Argument::none(), in[3], in[4], in[5], Argument::fixed(false)};
}

void restore_max_pool2d(Node& node) { node.target = "aten::max_pool2d"; }
void restore_max_pool3d(Node& node) { node.target = "aten::max_pool3d"; }
void restore_adaptive_pool2d(Node& node) { node.target = "aten::adaptive_avg_pool2d"; }
void restore_adaptive_pool3d(Node& node) { node.target = "aten::adaptive_avg_pool3d"; }

struct Kernel {
  std::string_view target, overload;
  size_t argument_count;
  void (*restore)(Node&);
};

constexpr std::array kKernels{
    Kernel{"aten::convolution", "", 9, restore_convolution},
    Kernel{"aten::native_layer_norm", "", 5, restore_layer_norm},
    Kernel{"aten::native_group_norm", "", 8, restore_group_norm},
    Kernel{"aten::_native_batch_norm_legit", "no_stats", 6, restore_batch_norm},
    Kernel{"aten::max_pool2d_with_indices", "", 6, restore_max_pool2d},
    Kernel{"aten::max_pool3d_with_indices", "", 6, restore_max_pool3d},
    Kernel{"aten::_adaptive_avg_pool2d", "", 2, restore_adaptive_pool2d},
    Kernel{"aten::_adaptive_avg_pool3d", "", 2, restore_adaptive_pool3d},
};

std::vector<bool> read_values(const Graph& graph) {
  std::vector<bool> is_read(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const Argument& argument : node.arguments) {
      for (const ValueId id : argument.ids) {
        if (id != kNoValue) is_read[id] = true;
      }
    }
  }
  for (const ValueId id : graph.outputs) is_read[id] = true;
  return is_read;
}

}  // namespace

void restore_composites(Graph& graph) {
  const std::vector<bool> is_read = read_values(graph);
  for (Node& node : graph.nodes) {
    const auto kernel = std::find_if(kKernels.begin(), kKernels.end(), [&](const Kernel& candidate) {
      return candidate.target == node.target && candidate.overload == node.overload &&
             candidate.argument_count == node.arguments.size();
    });
    if (kernel == kKernels.end() || node.outputs.empty()) continue;
    const bool has_further = std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                                         [&](ValueId id) { return id != kNoValue && is_read[id]; });
    if (has_further) continue;
    const std::string before = node.target;
    kernel->restore(node);
    if (node.target != before) node.outputs.resize(1);
  }
}

}  // namespace tutti::graph
