// aten::rms_norm; keeps one number per normalised group for backward.
#include "src/program/rms_norm.h"

#include <ATen/ATen.h>

#include <limits>
#include <numeric>

#include "src/program/broadcast.h"

namespace tutti::program {
namespace {

using at::Tensor;

/// output = input × r × weight, where r is 1 / sqrt(mean of input² + epsilon) over the last dimensions (Zhang and
/// Sennrich, "Root Mean Square Layer Normalization", 2019).
class RmsNorm final : public Instruction {
 public:
  explicit RmsNorm(const NodeContext& context)
      : input_(context.value(0)),
        weight_(context.value(2)),
        output_(context.output()),
        input_target_(context.target(0)),
        weight_target_(context.target(2)),
        slot_(context.new_slot()),
        dimensions_(context.integers(1).size()),
        value_(context.graph().values[input_]) {
    std::iota(dimensions_.begin(), dimensions_.end(), -static_cast<int64_t>(dimensions_.size()));
    for (const int64_t size : context.integers(1)) elements_ *= size;
    if (!context.constant(3).isNone()) epsilon_ = context.number(3);
    if (weight_ != graph::kNoValue) weight_broadcast_ = Broadcast(context.shape(weight_), value_.shape);
  }

  void forward(Frame& frame) const override {
    const Tensor& input = frame.values[input_];
    Tensor factor = at::mean(at::mul(input, input), dimensions_, /*keepdim=*/true).add_(epsilon(input)).rsqrt_();
    Tensor output = at::mul(input, factor);
    if (weight_ != graph::kNoValue) output.mul_(frame.values[weight_]);
    frame.values[output_] = std::move(output);
    if (frame.training) frame.saved[slot_] = std::move(factor);
  }

  void backward(Frame& frame) const override {
    const Tensor& gradient = frame.gradients[output_];
    const Tensor normalised = at::mul(frame.values[input_], frame.saved[slot_]);
    if (input_target_.needed()) {
      Tensor result = weight_ == graph::kNoValue ? gradient.clone() : at::mul(gradient, frame.values[weight_]);
      const Tensor share = at::mean(at::mul(result, normalised), dimensions_, /*keepdim=*/true);
      deliver(frame, input_target_, result.addcmul_(normalised, share, -1).mul_(frame.saved[slot_]));
    }
    if (weight_target_.needed()) {
      deliver(frame, weight_target_, weight_broadcast_.sum(at::mul(gradient, normalised)));
    }
  }

  std::string name() const override { return "rms_norm"; }
  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept{input_};
    if (weight_ != graph::kNoValue) kept.push_back(weight_);
    return kept;
  }
  int64_t saved_bytes(const RunSize& size) const override {
    return block_bytes(element_count(value_, size.rows) / elements_ * size.element_bytes);
  }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return (pass == Pass::kForward ? 1 : 2) * value_bytes(value_, size.rows, size.element_bytes);
  }

 private:
  double epsilon(const Tensor& input) const {
    if (epsilon_) return *epsilon_;
    return input.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon();
  }

  graph::ValueId input_, weight_, output_;
  GradientTarget input_target_, weight_target_;
  int64_t slot_;
  std::vector<int64_t> dimensions_;
  graph::Value value_;
  int64_t elements_ = 1;
  std::optional<double> epsilon_;
  Broadcast weight_broadcast_;
};

}  // namespace

std::unique_ptr<Instruction> make_rms_norm(const NodeContext& context) { return std::make_unique<RmsNorm>(context); }

}  // namespace tutti::program
