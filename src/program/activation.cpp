// The table of activation functions by ATen's kernels, and PReLU, which has a parameter.
#include "src/program/activation.h"

#include <ATen/ATen.h>

#include <array>

#include "src/program/broadcast.h"
#include "src/program/unary.h"

namespace tutti::program {
namespace {

using at::Tensor;
using Reads = UnaryFunction::Reads;

// Klambauer et al., "Self-Normalizing Neural Networks", 2017.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

constexpr std::array kActivations{
    UnaryFunction{"aten::relu", Reads::kOutput, [](const Tensor& x, Constants) { return at::relu(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::threshold_backward(g, y, 0); }},
    UnaryFunction{"aten::leaky_relu", Reads::kInput,
                  [](const Tensor& x, Constants c) { return at::leaky_relu(x, c[0].toScalar()); },
                  [](const Tensor& g, const Tensor& x, Constants c) {
                    return at::leaky_relu_backward(g, x, c[0].toScalar(), /*self_is_result=*/false);
                  }},
    UnaryFunction{
        "aten::gelu", Reads::kInput, [](const Tensor& x, Constants c) { return at::gelu(x, c[0].toStringView()); },
        [](const Tensor& g, const Tensor& x, Constants c) { return at::gelu_backward(g, x, c[0].toStringView()); }},
    UnaryFunction{"aten::silu", Reads::kInput, [](const Tensor& x, Constants) { return at::silu(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::silu_backward(g, x); }},
    UnaryFunction{"aten::sigmoid", Reads::kOutput, [](const Tensor& x, Constants) { return at::sigmoid(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::sigmoid_backward(g, y); }},
    UnaryFunction{"aten::tanh", Reads::kOutput, [](const Tensor& x, Constants) { return at::tanh(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::tanh_backward(g, y); }},
    UnaryFunction{"aten::softplus", Reads::kInput,
                  [](const Tensor& x, Constants c) { return at::softplus(x, c[0].toScalar(), c[1].toScalar()); },
                  [](const Tensor& g, const Tensor& x, Constants c) {
                    return at::softplus_backward(g, x, c[0].toScalar(), c[1].toScalar());
                  }},
    UnaryFunction{
        "aten::elu", Reads::kInput,
        [](const Tensor& x, Constants c) { return at::elu(x, c[0].toScalar(), c[1].toScalar(), c[2].toScalar()); },
        [](const Tensor& g, const Tensor& x, Constants c) {
          return at::elu_backward(g, c[0].toScalar(), c[1].toScalar(), c[2].toScalar(), /*is_result=*/false, x);
        }},
    UnaryFunction{"aten::selu", Reads::kInput, [](const Tensor& x, Constants) { return at::selu(x); },
                  [](const Tensor& g, const Tensor& x, Constants) {
                    return at::elu_backward(g, kSeluAlpha, kSeluScale, 1, /*is_result=*/false, x);
                  }},
    UnaryFunction{"aten::celu", Reads::kInput,
                  [](const Tensor& x, Constants c) { return at::celu(x, c[0].toScalar()); },
                  [](const Tensor& g, const Tensor& x, Constants c) {
                    const double alpha = c[0].toScalar().toDouble();
                    return at::elu_backward(g, alpha, 1, 1 / alpha, /*is_result=*/false, x);
                  }},
    UnaryFunction{"aten::hardtanh", Reads::kInput,
                  [](const Tensor& x, Constants c) { return at::hardtanh(x, c[0].toScalar(), c[1].toScalar()); },
                  [](const Tensor& g, const Tensor& x, Constants c) {
                    return at::hardtanh_backward(g, x, c[0].toScalar(), c[1].toScalar());
                  }},
    UnaryFunction{"aten::relu6", Reads::kInput, [](const Tensor& x, Constants) { return at::relu6(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::hardtanh_backward(g, x, 0, 6); }},
    UnaryFunction{"aten::hardswish", Reads::kInput, [](const Tensor& x, Constants) { return at::hardswish(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::hardswish_backward(g, x); }},
    UnaryFunction{"aten::hardsigmoid", Reads::kInput, [](const Tensor& x, Constants) { return at::hardsigmoid(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::hardsigmoid_backward(g, x); }},
    UnaryFunction{"aten::mish", Reads::kInput, [](const Tensor& x, Constants) { return at::mish(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::mish_backward(g, x); }},
    UnaryFunction{"aten::log_sigmoid", Reads::kInput, [](const Tensor& x, Constants) { return at::log_sigmoid(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::neg(x).sigmoid_().mul_(g); }},
    UnaryFunction{"aten::glu", Reads::kInput, [](const Tensor& x, Constants c) { return at::glu(x, c[0].toInt()); },
                  [](const Tensor& g, const Tensor& x, Constants c) { return at::glu_backward(g, x, c[0].toInt()); }},
    UnaryFunction{
        "aten::threshold", Reads::kInput,
        [](const Tensor& x, Constants c) { return at::threshold(x, c[0].toScalar(), c[1].toScalar()); },
        [](const Tensor& g, const Tensor& x, Constants c) { return at::threshold_backward(g, x, c[0].toScalar()); }},
};

/// The slope is one number, or one for each channel: the input's dimension 1.
class Prelu final : public Instruction {
 public:
  explicit Prelu(const NodeContext& context)
      : input_(context.value(0)),
        slope_(context.value(1)),
        output_(context.output()),
        input_target_(context.target(0)),
        slope_target_(context.target(1)),
        input_value_(context.graph().values[input_]),
        slope_shape_(input_value_.shape.size(), 1),
        given_shape_(context.shape(slope_)) {
    if (slope_shape_.size() > 1) slope_shape_[1] = element_count(context.graph().values[slope_], 1);
    broadcast_ = Broadcast(slope_shape_, input_value_.shape);
  }

  void forward(Frame& frame) const override {
    frame.values[output_] = at::_prelu_kernel(frame.values[input_], frame.values[slope_].view(slope_shape_));
  }

  void backward(Frame& frame) const override {
    auto [input, slope] = at::_prelu_kernel_backward(frame.gradients[output_], frame.values[input_],
                                                     frame.values[slope_].view(slope_shape_));
    deliver(frame, input_target_, std::move(input));
    if (slope_target_.needed()) deliver(frame, slope_target_, broadcast_.sum(slope).view(given_shape_));
  }

  std::string name() const override { return "prelu"; }
  std::vector<graph::ValueId> kept_values() const override { return {input_, slope_}; }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return pass == Pass::kForward ? 0 : 2 * value_bytes(input_value_, size.rows, size.element_bytes);
  }

 private:
  graph::ValueId input_, slope_, output_;
  GradientTarget input_target_, slope_target_;
  graph::Value input_value_;
  std::vector<int64_t> slope_shape_, given_shape_;
  Broadcast broadcast_;
};

}  // namespace

std::unique_ptr<Instruction> make_activation(const NodeContext& context) { return make_unary(context, kActivations); }
std::unique_ptr<Instruction> make_prelu(const NodeContext& context) { return std::make_unique<Prelu>(context); }

}  // namespace tutti::program
