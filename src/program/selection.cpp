// aten::where and aten::masked_fill. The gradient goes to the operand that was chosen.
#include "src/program/selection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "src/program/operand.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

/// Positions of the node's arguments.
struct Positions {
  size_t mask, chosen, other;
};

class Selection final : public Instruction {
 public:
  Selection(const NodeContext& context, const Positions& positions)
      : mask_(context.value(positions.mask)),
        output_(context.output()),
        chosen_(context, positions.chosen),
        other_(context, positions.other),
        other_is_first_(positions.other < positions.chosen),
        output_value_(context.graph().values[output_]),
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = at::where(frame.values[mask_], chosen_.in(frame), other_.in(frame));
  }

  void backward(Frame& frame) const override {
    if (other_is_first_) deliver_other(frame);
    if (chosen_.needs_gradient()) {
      chosen_.deliver_sum(frame, at::where(frame.values[mask_], frame.gradients[output_], 0));
    }
    if (!other_is_first_) deliver_other(frame);
  }

  std::string name() const override { return name_; }
  std::vector<graph::ValueId> kept_values() const override { return {mask_}; }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    int64_t most = 0;
    for (const Operand* operand : {&chosen_, &other_}) {
      if (!operand->needs_gradient()) continue;
      const bool is_dropped = !operand->takes_gradient_over() || chosen_.id() == other_.id();
      const int64_t dropped = is_dropped ? value_bytes(output_value_, size.rows, size.element_bytes) : 0;
      most = std::max(most, operand->scratch_bytes(size) + dropped);
    }
    return most;
  }

 private:
  void deliver_other(Frame& frame) const {
    if (!other_.needs_gradient()) return;
    const at::Tensor& gradient = frame.gradients[output_];
    other_.deliver_sum(frame, at::where(frame.values[mask_], at::zeros({}, gradient.options()), gradient));
  }

  graph::ValueId mask_, output_;
  Operand chosen_, other_;
  bool other_is_first_;
  graph::Value output_value_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Instruction> make_where(const NodeContext& context) {
  return std::make_unique<Selection>(context, Positions{.mask = 0, .chosen = 1, .other = 2});
}

std::unique_ptr<Instruction> make_masked_fill(const NodeContext& context) {
  return std::make_unique<Selection>(context, Positions{.mask = 1, .chosen = 2, .other = 0});
}

bool selection_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const size_t mask = node.target == "aten::where" ? 0 : 1;
  return is_operand(node, 0) && is_operand(node, 1) && is_operand(node, 2) &&
         node.arguments[mask].kind == graph::Argument::Kind::kValue && has_one_real_type(graph, node);
}

}  // namespace tutti::program
