// aten::addcmul.
#include "src/program/multiply_add.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/program/operand.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

class MultiplyAdd final : public Instruction {
 public:
  explicit MultiplyAdd(const NodeContext& context)
      : added_(context, 0),
        left_(context, 1),
        right_(context, 2),
        output_(context.output()),
        factor_(context.constant(3).toScalar()),
        output_value_(context.graph().values[output_]) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = at::addcmul(added_.in(frame), left_.in(frame), right_.in(frame), factor_);
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = frame.gradients[output_];
    added_.deliver_sum(frame, gradient);
    if (left_.needs_gradient()) left_.deliver_sum(frame, at::mul(gradient, right_.in(frame)).mul_(factor_));
    if (right_.needs_gradient()) right_.deliver_sum(frame, at::mul(gradient, left_.in(frame)).mul_(factor_));
  }

  std::string name() const override { return "addcmul"; }
  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept;
    if (right_.needs_gradient()) kept.push_back(left_.id());
    if (left_.needs_gradient()) kept.push_back(right_.id());
    return kept;
  }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    const int64_t product = value_bytes(output_value_, size.rows, size.element_bytes);
    return product + std::max({added_.scratch_bytes(size), left_.scratch_bytes(size), right_.scratch_bytes(size)});
  }

 private:
  Operand added_, left_, right_;
  graph::ValueId output_;
  at::Scalar factor_;
  graph::Value output_value_;
};

}  // namespace

std::unique_ptr<Instruction> make_multiply_add(const NodeContext& context) {
  return std::make_unique<MultiplyAdd>(context);
}

bool multiply_add_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const auto is_tensor = [&](size_t position) {
    return node.arguments[position].kind == graph::Argument::Kind::kValue;
  };
  return is_tensor(0) && is_tensor(1) && is_tensor(2) && !is_tensor(3) && has_one_real_type(graph, node);
}

}  // namespace tutti::program
