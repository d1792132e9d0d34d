// aten::_weight_norm by its formula; keeps the norms for backward.
#include "src/program/weight_norm.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

using at::Tensor;

/// output = direction × length / |direction|, with the norm over all dimensions but one (Salimans and Kingma, "Weight
/// Normalization", 2016).
class WeightNorm final : public Instruction {
 public:
  explicit WeightNorm(const NodeContext& context)
      : direction_(context.value(0)),
        length_(context.value(1)),
        output_(context.output()),
        direction_target_(context.target(0)),
        length_target_(context.target(1)),
        slot_(context.new_slot()),
        direction_value_(context.graph().values[direction_]),
        length_value_(context.graph().values[length_]) {
    const int64_t rank = context.rank(direction_), kept = context.integer(2);
    for (int64_t d = 0; d < rank; ++d) {
      if (kept == -1 || d != (kept + rank) % rank) dimensions_.push_back(d);
    }
  }

  void forward(Frame& frame) const override {
    const Tensor& direction = frame.values[direction_];
    Tensor norm = at::linalg_vector_norm(direction, 2, dimensions_, /*keepdim=*/true);
    frame.values[output_] = at::mul(direction, at::div(frame.values[length_], norm));
    if (frame.training) frame.saved[slot_] = std::move(norm);
  }

  void backward(Frame& frame) const override {
    const Tensor &gradient = frame.gradients[output_], &direction = frame.values[direction_];
    const Tensor &length = frame.values[length_], &norm = frame.saved[slot_];
    const Tensor of_length = at::sum(at::mul(gradient, direction), dimensions_, /*keepdim=*/true).div_(norm);
    if (direction_target_.needed()) {
      const Tensor along = at::mul(of_length, length).div_(at::mul(norm, norm));
      deliver(frame, direction_target_, at::mul(gradient, at::div(length, norm)).addcmul_(direction, along, -1));
    }
    deliver(frame, length_target_, of_length.view(length.sizes()));
  }

  std::string name() const override { return "weight_norm"; }
  std::vector<graph::ValueId> kept_values() const override { return {direction_, length_}; }
  int64_t saved_bytes(const RunSize& size) const override {
    return value_bytes(length_value_, size.rows, size.element_bytes);
  }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    const int64_t small = 3 * value_bytes(length_value_, size.rows, size.element_bytes);
    return small + (pass == Pass::kBackward ? value_bytes(direction_value_, size.rows, size.element_bytes) : 0);
  }

 private:
  graph::ValueId direction_, length_, output_;
  GradientTarget direction_target_, length_target_;
  int64_t slot_;
  graph::Value direction_value_, length_value_;
  std::vector<int64_t> dimensions_;  ///< of the norm
};

}  // namespace

std::unique_ptr<Instruction> make_weight_norm(const NodeContext& context) {
  return std::make_unique<WeightNorm>(context);
}

}  // namespace tutti::program
