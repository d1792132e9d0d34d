// Weighted sums, and products and choices of two operands.
#include "src/program/arithmetic.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "src/program/operand.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using at::Tensor;

/// What both kinds of instruction have.
class TwoOperands : public Instruction {
 public:
  /// The second operand is the node's argument `second`.
  explicit TwoOperands(const NodeContext& context, size_t second = 1)
      : operands_{Operand(context, 0), Operand(context, second)},
        output_(context.output()),
        output_value_(context.graph().values[output_]),
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {}

  std::string name() const override { return name_; }

 protected:
  int64_t output_bytes(const RunSize& size) const { return value_bytes(output_value_, size.rows, size.element_bytes); }
  bool reads_one_value() const { return operands_[0].id() == operands_[1].id(); }

  std::array<Operand, 2> operands_;
  graph::ValueId output_;

 private:
  graph::Value output_value_;
  std::string name_;
};

/// left × factor + right × factor, where one of the factors is 1.
class Sum final : public TwoOperands {
 public:
  Sum(const NodeContext& context, std::array<at::Scalar, 2> factors)
      : TwoOperands(context), factors_(std::move(factors)) {}

  void forward(Frame& frame) const override {
    const Tensor &left = operands_[0].in(frame), &right = operands_[1].in(frame);
    frame.values[output_] = passes(0) ? at::add(left, right, factors_[1]) : at::add(right, left, factors_[0]);
  }

  void backward(Frame& frame) const override {
    const Tensor gradient = frame.gradients[output_];
    for (const size_t i : {0, 1}) {
      if (!operands_[i].needs_gradient()) continue;
      operands_[i].deliver_sum(frame, passes(i) ? gradient : at::mul(gradient, factors_[i]));
    }
  }

  bool shares_gradient() const override {
    const auto shares = [&](size_t i) {
      return !operands_[i].needs_gradient() || (passes(i) && operands_[i].takes_gradient_over());
    };
    return shares(0) && shares(1);
  }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    int64_t most = 0;
    for (const size_t i : {0, 1}) {
      const bool is_multiplied = operands_[i].needs_gradient() && !passes(i) && !operands_[i].takes_gradient_over();
      most = std::max(most, operands_[i].scratch_bytes(size) + (is_multiplied ? output_bytes(size) : 0));
    }
    return most;
  }

 private:
  bool passes(size_t operand) const { return factors_[operand].equal(1); }

  std::array<at::Scalar, 2> factors_;
};

struct BinaryFunction {
  enum Reads { kNothing = 0, kLeft = 1, kRight = 2, kBoth = 3 };
  std::string_view target;
  Tensor (*forward)(const Tensor& left, const Tensor& right);
  /// The gradient of an operand, in the result's shape, and what it reads.
  Tensor (*left_gradient)(const Tensor& gradient, const Tensor& left, const Tensor& right);
  Reads left_reads;
  Tensor (*right_gradient)(const Tensor& gradient, const Tensor& left, const Tensor& right);
  Reads right_reads;
  int64_t temporaries = 0;  ///< tensors of the result's size that a gradient needs beside itself
};

/// The gradient where `chosen` is the greater or smaller (`is_other_chosen` false), half of it where both are equal.
Tensor chosen_gradient(const Tensor& gradient, const Tensor& is_equal, const Tensor& is_other_chosen) {
  return at::where(is_equal, at::mul(gradient, 0.5), gradient).masked_fill_(is_other_chosen, 0);
}

Tensor maximum_left(const Tensor& g, const Tensor& a, const Tensor& b) {
  return chosen_gradient(g, at::eq(a, b), at::lt(a, b));
}
Tensor maximum_right(const Tensor& g, const Tensor& a, const Tensor& b) {
  return chosen_gradient(g, at::eq(a, b), at::gt(a, b));
}

/// The input has the gradient where it is the result, also where it equals the bound.
Tensor clamp_min_left(const Tensor& g, const Tensor& a, const Tensor& b) { return at::where(at::ge(a, b), g, 0); }
Tensor clamp_min_right(const Tensor& g, const Tensor& a, const Tensor& b) { return at::where(at::lt(a, b), g, 0); }
Tensor clamp_max_left(const Tensor& g, const Tensor& a, const Tensor& b) { return at::where(at::le(a, b), g, 0); }
Tensor clamp_max_right(const Tensor& g, const Tensor& a, const Tensor& b) { return at::where(at::gt(a, b), g, 0); }

constexpr std::array kFunctions{
    BinaryFunction{
        "aten::mul", [](const Tensor& a, const Tensor& b) { return at::mul(a, b); },
        [](const Tensor& g, const Tensor&, const Tensor& b) { return at::mul(g, b); }, BinaryFunction::kRight,
        [](const Tensor& g, const Tensor& a, const Tensor&) { return at::mul(g, a); }, BinaryFunction::kLeft},
    BinaryFunction{
        "aten::div", [](const Tensor& a, const Tensor& b) { return at::div(a, b); },
        [](const Tensor& g, const Tensor&, const Tensor& b) { return at::div(g, b); }, BinaryFunction::kRight,
        [](const Tensor& g, const Tensor& a, const Tensor& b) { return at::div(a, b).div_(b).neg_().mul_(g); },
        BinaryFunction::kBoth},
    BinaryFunction{"aten::maximum", [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); }, maximum_left,
                   BinaryFunction::kBoth, maximum_right, BinaryFunction::kBoth, /*temporaries=*/2},
    BinaryFunction{"aten::max", [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); }, maximum_left,
                   BinaryFunction::kBoth, maximum_right, BinaryFunction::kBoth, /*temporaries=*/2},
    BinaryFunction{"aten::minimum", [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); }, maximum_right,
                   BinaryFunction::kBoth, maximum_left, BinaryFunction::kBoth, /*temporaries=*/2},
    BinaryFunction{"aten::min", [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); }, maximum_right,
                   BinaryFunction::kBoth, maximum_left, BinaryFunction::kBoth, /*temporaries=*/2},
    BinaryFunction{"aten::clamp_min", [](const Tensor& a, const Tensor& b) { return at::clamp_min(a, b); },
                   clamp_min_left, BinaryFunction::kBoth, clamp_min_right, BinaryFunction::kBoth, /*temporaries=*/1},
    BinaryFunction{"aten::clamp_max", [](const Tensor& a, const Tensor& b) { return at::clamp_max(a, b); },
                   clamp_max_left, BinaryFunction::kBoth, clamp_max_right, BinaryFunction::kBoth, /*temporaries=*/1},
};

class Binary final : public TwoOperands {
 public:
  Binary(const NodeContext& context, const BinaryFunction& function, size_t second = 1)
      : TwoOperands(context, second), function_(function) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = function_.forward(operands_[0].in(frame), operands_[1].in(frame));
  }

  void backward(Frame& frame) const override {
    const Tensor& gradient = frame.gradients[output_];
    const Tensor &left = operands_[0].in(frame), &right = operands_[1].in(frame);
    if (operands_[0].needs_gradient()) {
      operands_[0].deliver_sum(frame, function_.left_gradient(gradient, left, right));
    }
    if (operands_[1].needs_gradient()) {
      operands_[1].deliver_sum(frame, function_.right_gradient(gradient, left, right));
    }
  }

  std::vector<graph::ValueId> kept_values() const override {
    const int reads = (operands_[0].needs_gradient() ? function_.left_reads : BinaryFunction::kNothing) |
                      (operands_[1].needs_gradient() ? function_.right_reads : BinaryFunction::kNothing);
    std::vector<graph::ValueId> kept;
    for (const size_t i : {0, 1}) {
      const int reads_operand = reads & (i == 0 ? BinaryFunction::kLeft : BinaryFunction::kRight);
      if (reads_operand != 0 && operands_[i].id() != graph::kNoValue) kept.push_back(operands_[i].id());
    }
    return kept;
  }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    int64_t most = 0;
    for (const Operand& operand : operands_) {
      if (!operand.needs_gradient()) continue;
      const bool is_dropped = !operand.takes_gradient_over() || reads_one_value();
      const int64_t count = function_.temporaries + (is_dropped ? 1 : 0);
      most = std::max(most, operand.scratch_bytes(size) + count * output_bytes(size));
    }
    return most;
  }

 private:
  const BinaryFunction& function_;
};

const BinaryFunction& function_of(std::string_view target) {
  return *std::find_if(kFunctions.begin(), kFunctions.end(),
                       [&](const BinaryFunction& function) { return function.target == target; });
}

}  // namespace

std::unique_ptr<Instruction> make_sum(const NodeContext& context) {
  const at::Scalar one = 1, alpha = context.constant(2).toScalar();
  if (context.node().target == "aten::add") return std::make_unique<Sum>(context, std::array{one, alpha});
  if (context.node().target == "aten::sub") return std::make_unique<Sum>(context, std::array{one, -alpha});
  return std::make_unique<Sum>(context, std::array{-alpha, one});
}

std::unique_ptr<Instruction> make_binary(const NodeContext& context) {
  return std::make_unique<Binary>(context, function_of(context.node().target));
}

std::unique_ptr<Instruction> make_clamp(const NodeContext& context) {
  const bool has_minimum = is_operand(context.node(), 1);
  return std::make_unique<Binary>(context, function_of(has_minimum ? "aten::clamp_min" : "aten::clamp_max"),
                                  has_minimum ? 1 : 2);
}

bool clamp_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return is_operand(node, 1) != is_operand(node, 2) && has_one_real_type(graph, node);
}

bool arithmetic_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const auto is_tensor = [&](size_t position) {
    return node.arguments[position].kind == graph::Argument::Kind::kValue;
  };
  const bool has_constant_factor = node.arguments.size() == 2 || is_operand(node, 2);
  return is_operand(node, 0) && is_operand(node, 1) && (is_tensor(0) || is_tensor(1)) && has_constant_factor &&
         has_one_real_type(graph, node);
}

}  // namespace tutti::program
