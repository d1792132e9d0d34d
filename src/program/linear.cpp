// aten::linear: one matrix product forward, two backward, written straight into the bound gradients.
#include "src/program/linear.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

class Linear final : public Instruction {
 public:
  explicit Linear(const NodeContext& context)
      : input_(context.value(0)),
        weight_(context.value(1)),
        bias_(context.value(2)),
        output_(context.output()),
        input_target_(context.target(0)),
        weight_target_(context.target(1)),
        bias_target_(context.target(2)),
        in_features_(context.shape(weight_).back()),
        out_features_(context.shape(weight_).front()),
        is_matrix_(context.rank(input_) == 2) {}

  void forward(Frame& frame) const override {
    const at::Tensor& input = frame.values[input_];          // [batch, ..., in]
    const at::Tensor weight = frame.values[weight_].t();     // [in, out]
    const at::Tensor rows = as_matrix(input, in_features_);  // [n, in]
    at::Tensor output = bias_ == graph::kNoValue ? at::mm(rows, weight) : at::addmm(frame.values[bias_], rows, weight);
    if (!is_matrix_) {
      std::vector<int64_t> shape = input.sizes().vec();
      shape.back() = out_features_;
      output = output.view(shape);
    }
    frame.values[output_] = std::move(output);
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = as_matrix(frame.gradients[output_], out_features_);  // [n, out]
    if (input_target_.needed()) {
      at::Tensor input_gradient = at::mm(gradient, frame.values[weight_]);
      if (!is_matrix_) {
        std::vector<int64_t> shape = frame.gradients[output_].sizes().vec();
        shape.back() = in_features_;
        input_gradient = input_gradient.view(shape);
      }
      deliver(frame, input_target_, std::move(input_gradient));
    }
    if (weight_target_.needed()) {
      deliver_product(frame, weight_target_, gradient.t(), as_matrix(frame.values[input_], in_features_));
    }
    deliver_row_sum(frame, bias_target_, gradient);
  }

  std::string name() const override { return "linear"; }

  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept;
    if (weight_target_.needed()) kept.push_back(input_);
    if (input_target_.needed()) kept.push_back(weight_);
    return kept;
  }

 private:
  at::Tensor as_matrix(const at::Tensor& tensor, int64_t columns) const {
    return is_matrix_ ? tensor : tensor.reshape({-1, columns});
  }

  graph::ValueId input_, weight_, bias_, output_;
  GradientTarget input_target_, weight_target_, bias_target_;
  int64_t in_features_, out_features_;
  bool is_matrix_;
};

}  // namespace

std::unique_ptr<Instruction> make_linear(const NodeContext& context) { return std::make_unique<Linear>(context); }

}  // namespace tutti::program
