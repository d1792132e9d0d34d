// Activation functions by ATen's kernels: each says how it runs and whether backward reads its input or its output.
#include "src/program/activation.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

enum class Reads { kInput, kOutput };

struct Relu {
  static constexpr const char* kName = "relu";
  static constexpr Reads kReads = Reads::kOutput;
  explicit Relu(const NodeContext&) {}
  at::Tensor forward(const at::Tensor& input) const { return at::relu(input); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& output) const {
    return at::threshold_backward(gradient, output, 0);
  }
};

struct LeakyRelu {
  static constexpr const char* kName = "leaky_relu";
  static constexpr Reads kReads = Reads::kInput;
  explicit LeakyRelu(const NodeContext& context) : slope(context.number(1)) {}
  at::Tensor forward(const at::Tensor& input) const { return at::leaky_relu(input, slope); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input) const {
    return at::leaky_relu_backward(gradient, input, slope, /*self_is_result=*/false);
  }
  double slope;
};

struct Gelu {
  static constexpr const char* kName = "gelu";
  static constexpr Reads kReads = Reads::kInput;
  explicit Gelu(const NodeContext& context) : approximation(context.text(1)) {}
  at::Tensor forward(const at::Tensor& input) const { return at::gelu(input, approximation); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input) const {
    return at::gelu_backward(gradient, input, approximation);
  }
  std::string approximation;
};

struct Silu {
  static constexpr const char* kName = "silu";
  static constexpr Reads kReads = Reads::kInput;
  explicit Silu(const NodeContext&) {}
  at::Tensor forward(const at::Tensor& input) const { return at::silu(input); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input) const {
    return at::silu_backward(gradient, input);
  }
};

struct Sigmoid {
  static constexpr const char* kName = "sigmoid";
  static constexpr Reads kReads = Reads::kOutput;
  explicit Sigmoid(const NodeContext&) {}
  at::Tensor forward(const at::Tensor& input) const { return at::sigmoid(input); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& output) const {
    return at::sigmoid_backward(gradient, output);
  }
};

struct Tanh {
  static constexpr const char* kName = "tanh";
  static constexpr Reads kReads = Reads::kOutput;
  explicit Tanh(const NodeContext&) {}
  at::Tensor forward(const at::Tensor& input) const { return at::tanh(input); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& output) const {
    return at::tanh_backward(gradient, output);
  }
};

struct Softplus {
  static constexpr const char* kName = "softplus";
  static constexpr Reads kReads = Reads::kInput;
  explicit Softplus(const NodeContext& context) : beta(context.number(1)), threshold(context.number(2)) {}
  at::Tensor forward(const at::Tensor& input) const { return at::softplus(input, beta, threshold); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input) const {
    return at::softplus_backward(gradient, input, beta, threshold);
  }
  double beta, threshold;
};

struct Elu {
  static constexpr const char* kName = "elu";
  static constexpr Reads kReads = Reads::kInput;
  explicit Elu(const NodeContext& context)
      : alpha(context.number(1)), scale(context.number(2)), input_scale(context.number(3)) {}
  at::Tensor forward(const at::Tensor& input) const { return at::elu(input, alpha, scale, input_scale); }
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input) const {
    return at::elu_backward(gradient, alpha, scale, input_scale, /*is_result=*/false, input);
  }
  double alpha, scale, input_scale;
};

template <typename Function>
class Activation final : public Instruction {
 public:
  explicit Activation(const NodeContext& context)
      : function_(context), input_(context.value(0)), output_(context.output()), target_(context.target(0)) {}

  void forward(Frame& frame) const override { frame.values[output_] = function_.forward(frame.values[input_]); }

  void backward(Frame& frame) const override {
    deliver(frame, target_, function_.backward(frame.gradients[output_], frame.values[read_value()]));
  }

  std::string name() const override { return Function::kName; }
  std::vector<graph::ValueId> kept_values() const override { return {read_value()}; }

 private:
  graph::ValueId read_value() const { return Function::kReads == Reads::kInput ? input_ : output_; }

  Function function_;
  graph::ValueId input_, output_;
  GradientTarget target_;
};

template <typename Function>
std::unique_ptr<Instruction> make(const NodeContext& context) {
  return std::make_unique<Activation<Function>>(context);
}

}  // namespace

std::unique_ptr<Instruction> make_relu(const NodeContext& context) { return make<Relu>(context); }
std::unique_ptr<Instruction> make_leaky_relu(const NodeContext& context) { return make<LeakyRelu>(context); }
std::unique_ptr<Instruction> make_gelu(const NodeContext& context) { return make<Gelu>(context); }
std::unique_ptr<Instruction> make_silu(const NodeContext& context) { return make<Silu>(context); }
std::unique_ptr<Instruction> make_sigmoid(const NodeContext& context) { return make<Sigmoid>(context); }
std::unique_ptr<Instruction> make_tanh(const NodeContext& context) { return make<Tanh>(context); }
std::unique_ptr<Instruction> make_softplus(const NodeContext& context) { return make<Softplus>(context); }
std::unique_ptr<Instruction> make_elu(const NodeContext& context) { return make<Elu>(context); }

}  // namespace tutti::program
