// Softmax by ATen's kernels.
#include "src/program/softmax.h"

#include <ATen/ATen.h>

#include <array>

#include "src/program/unary.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using at::Tensor;
using Reads = UnaryFunction::Reads;

Tensor softmax(const Tensor& input, Constants constants) { return at::softmax(input, constants[0].toInt()); }
Tensor softmax_backward(const Tensor& gradient, const Tensor& output, Constants constants) {
  return at::_softmax_backward_data(gradient, output, constants[0].toInt(), output.scalar_type());
}
Tensor log_softmax(const Tensor& input, Constants constants) { return at::log_softmax(input, constants[0].toInt()); }
Tensor log_softmax_backward(const Tensor& gradient, const Tensor& output, Constants constants) {
  return at::_log_softmax_backward_data(gradient, output, constants[0].toInt(), output.scalar_type());
}

constexpr std::array kFunctions{
    UnaryFunction{"aten::softmax", Reads::kOutput, softmax, softmax_backward},
    UnaryFunction{"aten::_softmax", Reads::kOutput, softmax, softmax_backward},
    UnaryFunction{"aten::log_softmax", Reads::kOutput, log_softmax, log_softmax_backward},
    UnaryFunction{"aten::_log_softmax", Reads::kOutput, log_softmax, log_softmax_backward},
};

}  // namespace

std::unique_ptr<Instruction> make_softmax(const NodeContext& context) { return make_unary(context, kFunctions); }

bool softmax_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  if (!unary_has_instruction(graph, node)) return false;
  return node.arguments[2].constant.isBool() ? !node.arguments[2].constant.toBool() : keeps_type(graph, node, 2);
}

}  // namespace tutti::program
