// The table of instruction factories.
#include "src/program/registry.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/program/activation.h"
#include "src/program/convolution.h"
#include "src/program/dropout.h"
#include "src/program/elementwise.h"
#include "src/program/embedding.h"
#include "src/program/linear.h"
#include "src/program/normalisation.h"
#include "src/program/pooling.h"
#include "src/program/shape.h"

namespace tutti::program {
namespace {

struct Entry {
  std::string_view target;
  std::string_view overload;
  InstructionFactory factory;
  bool (*accepts)(const graph::Graph&, const graph::Node&) = nullptr;  ///< null: every node
};

constexpr std::array kEntries{
    Entry{"aten::linear", "", make_linear},
    Entry{"aten::conv1d", "", make_convolution},
    Entry{"aten::conv2d", "", make_convolution},
    Entry{"aten::conv3d", "", make_convolution},
    Entry{"aten::conv_transpose2d", "input", make_transposed_convolution},
    Entry{"aten::max_pool1d", "", make_max_pool},
    Entry{"aten::max_pool2d", "", make_max_pool},
    Entry{"aten::max_pool3d", "", make_max_pool},
    Entry{"aten::avg_pool1d", "", make_average_pool},
    Entry{"aten::avg_pool2d", "", make_average_pool},
    Entry{"aten::avg_pool3d", "", make_average_pool},
    Entry{"aten::adaptive_avg_pool1d", "", make_adaptive_average_pool},
    Entry{"aten::adaptive_avg_pool2d", "", make_adaptive_average_pool},
    Entry{"aten::adaptive_avg_pool3d", "", make_adaptive_average_pool},
    Entry{"aten::batch_norm", "", make_batch_norm},
    Entry{"aten::layer_norm", "", make_layer_norm},
    Entry{"aten::group_norm", "", make_group_norm},
    Entry{"aten::dropout", "", make_dropout},
    Entry{"aten::embedding", "", make_embedding},
    Entry{"aten::relu", "", make_relu},
    Entry{"aten::leaky_relu", "", make_leaky_relu},
    Entry{"aten::gelu", "", make_gelu},
    Entry{"aten::silu", "", make_silu},
    Entry{"aten::sigmoid", "", make_sigmoid},
    Entry{"aten::tanh", "", make_tanh},
    Entry{"aten::softplus", "", make_softplus},
    Entry{"aten::elu", "", make_elu},
    Entry{"aten::flatten", "using_ints", make_flatten, reshape_has_instruction},
    Entry{"aten::reshape", "", make_reshape, reshape_has_instruction},
    Entry{"aten::view", "", make_reshape, reshape_has_instruction},
    Entry{"aten::add", "Tensor", make_add, add_has_instruction},
    Entry{"aten::cat", "", make_cat, cat_has_instruction},
    Entry{"aten::add_", "Tensor", make_counter, counter_has_instruction},
};

/// Instructions know the sizes in their arguments when they are compiled; numbers are known when they run.
bool reads_a_number(const graph::Graph& graph, const graph::Node& node) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [&](const graph::Argument& argument) {
    return std::any_of(argument.ids.begin(), argument.ids.end(), [&](graph::ValueId id) {
      return id != graph::kNoValue && graph.values[id].kind == graph::ValueKind::kNumber;
    });
  });
}

}  // namespace

InstructionFactory find_factory(const graph::Graph& graph, const graph::Node& node) {
  if (reads_a_number(graph, node) || node.outputs.size() != 1) return nullptr;
  for (const Entry& entry : kEntries) {
    if (entry.target != node.target || entry.overload != node.overload) continue;
    return entry.accepts == nullptr || entry.accepts(graph, node) ? entry.factory : nullptr;
  }
  return nullptr;
}

}  // namespace tutti::program
