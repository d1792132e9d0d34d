// The table of instruction factories.
#include "src/program/registry.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/program/activation.h"
#include "src/program/arithmetic.h"
#include "src/program/attention.h"
#include "src/program/attention_formula.h"
#include "src/program/convolution.h"
#include "src/program/dropout.h"
#include "src/program/einsum.h"
#include "src/program/elementwise.h"
#include "src/program/embedding.h"
#include "src/program/extremum.h"
#include "src/program/indexing.h"
#include "src/program/linear.h"
#include "src/program/math_function.h"
#include "src/program/movement.h"
#include "src/program/multiply_add.h"
#include "src/program/normalisation.h"
#include "src/program/parts.h"
#include "src/program/pooling.h"
#include "src/program/product.h"
#include "src/program/recurrent.h"
#include "src/program/reduction.h"
#include "src/program/rms_norm.h"
#include "src/program/selection.h"
#include "src/program/shape.h"
#include "src/program/softmax.h"
#include "src/program/unary.h"
#include "src/program/value_type.h"
#include "src/program/value_use.h"
#include "src/program/weight_norm.h"

namespace tutti::program {
namespace {

/// Whether the instruction takes arguments that are numbers, known when the program runs.
enum class Numbers { kRefused, kAccepted };
/// Whether the instruction takes nodes with several results, some of them unwanted.
enum class Results { kOne, kSeveral };

struct Entry {
  std::string_view target;
  std::string_view overload;
  InstructionFactory factory;
  bool (*accepts)(const graph::Graph&, const graph::Node&) = nullptr;  ///< null: every node
  Numbers numbers = Numbers::kRefused;
  Results results = Results::kOne;
};

constexpr Entry moving(std::string_view target, std::string_view overload, InstructionFactory factory,
                       bool (*accepts)(const graph::Graph&, const graph::Node&) = nullptr) {
  return {target, overload, factory, accepts, Numbers::kAccepted, Results::kOne};
}
constexpr Entry parts(std::string_view target, std::string_view overload) {
  return {target, overload, make_parts, nullptr, Numbers::kAccepted, Results::kSeveral};
}

constexpr Entry unary(std::string_view target, InstructionFactory factory) {
  return {target, "", factory, unary_has_instruction};
}
constexpr Entry arithmetic(std::string_view target, std::string_view overload, InstructionFactory factory) {
  return {target, overload, factory, arithmetic_has_instruction, Numbers::kAccepted};
}
constexpr Entry reduction(std::string_view target, std::string_view overload) {
  return {target, overload, make_reduction, reduction_has_instruction};
}
constexpr Entry several(std::string_view target, std::string_view overload, InstructionFactory factory,
                        bool (*accepts)(const graph::Graph&, const graph::Node&)) {
  return {target, overload, factory, accepts, Numbers::kRefused, Results::kSeveral};
}

constexpr std::array kEntries{
    Entry{"aten::linear", "", make_linear},
    Entry{"aten::conv1d", "", make_convolution},
    Entry{"aten::conv2d", "", make_convolution},
    Entry{"aten::conv3d", "", make_convolution},
    Entry{"aten::convolution", "", make_general_convolution},
    Entry{"aten::conv1d", "padding", make_padded_convolution, padded_convolution_has_instruction},
    Entry{"aten::conv2d", "padding", make_padded_convolution, padded_convolution_has_instruction},
    Entry{"aten::conv3d", "padding", make_padded_convolution, padded_convolution_has_instruction},
    Entry{"aten::conv_transpose1d", "", make_transposed_convolution},
    Entry{"aten::conv_transpose2d", "input", make_transposed_convolution},
    Entry{"aten::conv_transpose3d", "input", make_transposed_convolution},
    Entry{"aten::max_pool1d", "", make_max_pool},
    Entry{"aten::max_pool2d", "", make_max_pool},
    Entry{"aten::max_pool3d", "", make_max_pool},
    several("aten::max_pool2d_with_indices", "", make_max_pool, gives_one_result),
    several("aten::max_pool3d_with_indices", "", make_max_pool, gives_one_result),
    Entry{"aten::avg_pool1d", "", make_average_pool},
    Entry{"aten::avg_pool2d", "", make_average_pool},
    Entry{"aten::avg_pool3d", "", make_average_pool},
    Entry{"aten::adaptive_avg_pool1d", "", make_adaptive_average_pool},
    Entry{"aten::adaptive_avg_pool2d", "", make_adaptive_average_pool},
    Entry{"aten::adaptive_avg_pool3d", "", make_adaptive_average_pool},
    Entry{"aten::_adaptive_avg_pool2d", "", make_adaptive_average_pool},
    Entry{"aten::_adaptive_avg_pool3d", "", make_adaptive_average_pool},
    Entry{"aten::batch_norm", "", make_batch_norm},
    Entry{"aten::layer_norm", "", make_layer_norm},
    Entry{"aten::group_norm", "", make_group_norm},
    several("aten::native_layer_norm", "", make_layer_norm, gives_one_result),
    Entry{"aten::native_group_norm", "", make_native_group_norm, gives_one_result, Numbers::kAccepted,
          Results::kSeveral},
    Entry{"aten::instance_norm", "", make_instance_norm, instance_norm_has_instruction},
    Entry{"aten::rms_norm", "", make_rms_norm, has_one_real_type},
    Entry{"aten::_weight_norm", "", make_weight_norm, has_one_real_type},
    Entry{"aten::dropout", "", make_dropout},
    several("aten::native_dropout", "", make_dropout, gives_one_result),
    Entry{"aten::embedding", "", make_embedding},
    unary("aten::celu", make_activation),
    unary("aten::elu", make_activation),
    unary("aten::gelu", make_activation),
    unary("aten::glu", make_activation),
    unary("aten::hardsigmoid", make_activation),
    unary("aten::hardswish", make_activation),
    unary("aten::hardtanh", make_activation),
    unary("aten::leaky_relu", make_activation),
    unary("aten::log_sigmoid", make_activation),
    unary("aten::mish", make_activation),
    unary("aten::relu", make_activation),
    unary("aten::relu6", make_activation),
    unary("aten::selu", make_activation),
    unary("aten::sigmoid", make_activation),
    unary("aten::silu", make_activation),
    unary("aten::softplus", make_activation),
    unary("aten::tanh", make_activation),
    unary("aten::threshold", make_activation),
    Entry{"aten::prelu", "", make_prelu, has_one_real_type},
    unary("aten::abs", make_math_function),
    unary("aten::clamp", make_math_function),
    unary("aten::clamp_max", make_math_function),
    unary("aten::clamp_min", make_math_function),
    unary("aten::cos", make_math_function),
    unary("aten::erf", make_math_function),
    unary("aten::exp", make_math_function),
    unary("aten::expm1", make_math_function),
    unary("aten::log", make_math_function),
    unary("aten::log1p", make_math_function),
    unary("aten::nan_to_num", make_math_function),
    unary("aten::neg", make_math_function),
    Entry{"aten::pow", "Tensor_Scalar", make_math_function, unary_has_instruction},
    unary("aten::reciprocal", make_math_function),
    unary("aten::rsqrt", make_math_function),
    unary("aten::sin", make_math_function),
    unary("aten::sqrt", make_math_function),
    unary("aten::square", make_math_function),
    Entry{"aten::cumsum", "", make_cumulative_sum, cumulative_sum_has_instruction},
    Entry{"aten::softmax", "int", make_softmax, softmax_has_instruction},
    Entry{"aten::log_softmax", "int", make_softmax, softmax_has_instruction},
    Entry{"aten::_softmax", "", make_softmax, softmax_has_instruction},
    Entry{"aten::_log_softmax", "", make_softmax, softmax_has_instruction},
    arithmetic("aten::add", "Tensor", make_sum),
    arithmetic("aten::add", "Scalar", make_sum),
    arithmetic("aten::sub", "Tensor", make_sum),
    arithmetic("aten::sub", "Scalar", make_sum),
    arithmetic("aten::rsub", "Tensor", make_sum),
    arithmetic("aten::rsub", "Scalar", make_sum),
    arithmetic("aten::mul", "Tensor", make_binary),
    arithmetic("aten::mul", "Scalar", make_binary),
    arithmetic("aten::div", "Tensor", make_binary),
    arithmetic("aten::div", "Scalar", make_binary),
    arithmetic("aten::maximum", "", make_binary),
    arithmetic("aten::minimum", "", make_binary),
    arithmetic("aten::clamp_max", "Tensor", make_binary),
    arithmetic("aten::clamp_min", "Tensor", make_binary),
    Entry{"aten::clamp", "Tensor", make_clamp, clamp_has_instruction},
    arithmetic("aten::max", "other", make_binary),
    arithmetic("aten::min", "other", make_binary),
    Entry{"aten::addcmul", "", make_multiply_add, multiply_add_has_instruction},
    several("aten::max", "dim", make_extremum, extremum_has_instruction),
    several("aten::min", "dim", make_extremum, extremum_has_instruction),
    Entry{"aten::where", "self", make_where, selection_has_instruction},
    Entry{"aten::where", "ScalarSelf", make_where, selection_has_instruction},
    Entry{"aten::where", "ScalarOther", make_where, selection_has_instruction},
    Entry{"aten::masked_fill", "Scalar", make_masked_fill, selection_has_instruction},
    Entry{"aten::masked_fill", "Tensor", make_masked_fill, selection_has_instruction},
    reduction("aten::sum", ""),
    reduction("aten::sum", "dim_IntList"),
    reduction("aten::mean", ""),
    reduction("aten::mean", "dim"),
    reduction("aten::amax", ""),
    reduction("aten::amin", ""),
    reduction("aten::logsumexp", ""),
    reduction("aten::linalg_vector_norm", ""),
    reduction("aten::var", "dim"),
    reduction("aten::var", "correction"),
    reduction("aten::std", "dim"),
    reduction("aten::std", "correction"),
    Entry{"aten::matmul", "", make_product, product_has_instruction},
    Entry{"aten::mm", "", make_product, product_has_instruction},
    Entry{"aten::bmm", "", make_product, product_has_instruction},
    Entry{"aten::mv", "", make_product, product_has_instruction},
    Entry{"aten::dot", "", make_product, product_has_instruction},
    Entry{"aten::vdot", "", make_product, product_has_instruction},
    Entry{"aten::addmm", "", make_added_product, product_has_instruction},
    Entry{"aten::addmv", "", make_added_product, product_has_instruction},
    Entry{"aten::baddbmm", "", make_added_product, product_has_instruction},
    Entry{"aten::einsum", "", make_einsum, einsum_has_instruction},
    several("aten::gru", "input", make_recurrent_layers, recurrent_layers_have_instruction),
    several("aten::lstm", "input", make_recurrent_layers, recurrent_layers_have_instruction),
    several("aten::rnn_relu", "input", make_recurrent_layers, recurrent_layers_have_instruction),
    several("aten::rnn_tanh", "input", make_recurrent_layers, recurrent_layers_have_instruction),
    several("aten::gru_cell", "", make_recurrent_cell, recurrent_cell_has_instruction),
    several("aten::lstm_cell", "", make_recurrent_cell, recurrent_cell_has_instruction),
    several("aten::rnn_relu_cell", "", make_recurrent_cell, recurrent_cell_has_instruction),
    several("aten::rnn_tanh_cell", "", make_recurrent_cell, recurrent_cell_has_instruction),
    Entry{"aten::scaled_dot_product_attention", "", make_attention, has_attention_formula},
    moving("aten::flatten", "using_ints", make_reshape),
    moving("aten::unflatten", "int", make_reshape),
    moving("aten::ravel", "", make_reshape),
    moving("aten::reshape", "", make_reshape),
    moving("aten::reshape_as", "", make_reshape),
    moving("aten::view", "", make_reshape),
    moving("aten::view_as", "", make_reshape),
    moving("aten::_unsafe_view", "", make_reshape),
    moving("aten::squeeze", "", make_reshape),
    moving("aten::squeeze", "dim", make_reshape),
    moving("aten::squeeze", "dims", make_reshape),
    moving("aten::unsqueeze", "", make_reshape),
    Entry{"aten::transpose", "int", make_permute, permute_has_instruction},
    Entry{"aten::t", "", make_permute, permute_has_instruction},
    Entry{"aten::permute", "", make_permute, permute_has_instruction},
    Entry{"aten::swapaxes", "", make_permute, permute_has_instruction},
    Entry{"aten::swapdims", "", make_permute, permute_has_instruction},
    Entry{"aten::movedim", "int", make_permute, permute_has_instruction},
    Entry{"aten::movedim", "intlist", make_permute, permute_has_instruction},
    Entry{"aten::moveaxis", "int", make_permute, permute_has_instruction},
    Entry{"aten::moveaxis", "intlist", make_permute, permute_has_instruction},
    Entry{"aten::numpy_T", "", make_permute, permute_has_instruction},
    Entry{"aten::mT", "", make_permute, permute_has_instruction},
    Entry{"aten::mH", "", make_permute, permute_has_instruction},
    Entry{"aten::matrix_H", "", make_permute, permute_has_instruction},
    Entry{"aten::adjoint", "", make_permute, permute_has_instruction},
    parts("aten::select", "int"),
    parts("aten::slice", "Tensor"),
    parts("aten::narrow", ""),
    parts("aten::diagonal", ""),
    parts("aten::split", "Tensor"),
    parts("aten::split", "sizes"),
    parts("aten::split_with_sizes", ""),
    parts("aten::chunk", ""),
    parts("aten::unbind", "int"),
    parts("aten::tensor_split", "sections"),
    parts("aten::tensor_split", "indices"),
    Entry{"aten::stack", "", make_stack},
    moving("aten::expand", "", make_expand),
    moving("aten::expand_as", "", make_expand),
    moving("aten::broadcast_to", "", make_expand),
    moving("aten::repeat", "", make_repeat),
    moving("aten::tile", "", make_repeat),
    moving("aten::contiguous", "", make_copy, copy_has_instruction),
    moving("aten::clone", "", make_copy, copy_has_instruction),
    moving("aten::alias", "", make_copy, copy_has_instruction),
    moving("aten::to", "dtype", make_copy, copy_has_instruction),
    moving("aten::to", "dtype_layout", make_copy, copy_has_instruction),
    moving("aten::to", "device", make_copy, copy_has_instruction),
    moving("aten::to", "other", make_copy, copy_has_instruction),
    moving("aten::type_as", "", make_copy, copy_has_instruction),
    moving("aten::_to_copy", "", make_copy, copy_has_instruction),
    Entry{"aten::flip", "", make_flip},
    Entry{"aten::roll", "", make_roll},
    Entry{"aten::pad", "", make_pad, pad_has_instruction},
    Entry{"aten::constant_pad_nd", "", make_pad, pad_has_instruction},
    Entry{"aten::pixel_shuffle", "", make_pixel_shuffle},
    Entry{"aten::pixel_unshuffle", "", make_pixel_unshuffle},
    Entry{"aten::unfold", "", make_unfold},
    Entry{"aten::index_select", "", make_index_select},
    Entry{"aten::gather", "", make_gather},
    Entry{"aten::index", "Tensor", make_index},
    Entry{"aten::cat", "", make_cat, cat_has_instruction},
    Entry{"aten::add_", "Tensor", make_counter, counter_has_instruction},
};

bool reads_a_number(const graph::Graph& graph, const graph::Node& node) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [&](const graph::Argument& argument) {
    return std::any_of(argument.ids.begin(), argument.ids.end(), [&](graph::ValueId id) {
      return id != graph::kNoValue && graph.values[id].kind == graph::ValueKind::kNumber;
    });
  });
}

bool takes(const Entry& entry, const graph::Graph& graph, const graph::Node& node) {
  if (entry.results == Results::kOne && node.outputs.size() != 1) return false;
  if (entry.numbers == Numbers::kRefused && reads_a_number(graph, node)) return false;
  return entry.accepts == nullptr || entry.accepts(graph, node);
}

}  // namespace

InstructionFactory find_factory(const graph::Graph& graph, const graph::Node& node) {
  for (const Entry& entry : kEntries) {
    if (entry.target == node.target && entry.overload == node.overload && takes(entry, graph, node)) {
      return entry.factory;
    }
  }
  return nullptr;
}

}  // namespace tutti::program
