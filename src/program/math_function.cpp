// The table of functions. Their backward passes write into one fresh tensor where they can.
#include "src/program/math_function.h"

#include <ATen/ATen.h>

#include <array>
#include <numbers>

#include "src/program/unary.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using at::Tensor;
using Reads = UnaryFunction::Reads;

std::optional<at::Scalar> optional_scalar(const c10::IValue& constant) {
  return constant.isNone() ? std::optional<at::Scalar>() : std::optional<at::Scalar>(constant.toScalar());
}

std::optional<double> optional_double(const c10::IValue& constant) {
  return constant.isNone() ? std::optional<double>() : std::optional<double>(constant.toScalar().toDouble());
}

Tensor clamp_backward(const Tensor& gradient, const Tensor& input, Constants bounds) {
  Tensor result = gradient;
  if (!bounds[0].isNone()) result = at::where(at::ge(input, bounds[0].toScalar()), result, 0);
  if (!bounds[1].isNone()) result = at::where(at::le(input, bounds[1].toScalar()), result, 0);
  return result;
}

Tensor pow_backward(const Tensor& gradient, const Tensor& input, const at::Scalar& exponent) {
  if (exponent.toDouble() == 0) return at::zeros_like(input);
  return at::pow(input, exponent.toDouble() - 1).mul_(exponent).mul_(gradient);
}

constexpr std::array kFunctions{
    UnaryFunction{"aten::neg", Reads::kNothing, [](const Tensor& x, Constants) { return at::neg(x); },
                  [](const Tensor& g, const Tensor&, Constants) { return at::neg(g); }},
    UnaryFunction{"aten::abs", Reads::kInput, [](const Tensor& x, Constants) { return at::abs(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::sgn(x).mul_(g); }},
    UnaryFunction{"aten::exp", Reads::kOutput, [](const Tensor& x, Constants) { return at::exp(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::mul(g, y); }},
    UnaryFunction{"aten::expm1", Reads::kOutput, [](const Tensor& x, Constants) { return at::expm1(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::add(y, 1).mul_(g); }},
    UnaryFunction{"aten::log", Reads::kInput, [](const Tensor& x, Constants) { return at::log(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::div(g, x); }},
    UnaryFunction{"aten::log1p", Reads::kInput, [](const Tensor& x, Constants) { return at::log1p(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::add(x, 1).reciprocal_().mul_(g); }},
    UnaryFunction{"aten::sqrt", Reads::kOutput, [](const Tensor& x, Constants) { return at::sqrt(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::div(g, y).mul_(0.5); }},
    UnaryFunction{"aten::rsqrt", Reads::kOutput, [](const Tensor& x, Constants) { return at::rsqrt(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::pow(y, 3).mul_(-0.5).mul_(g); }},
    UnaryFunction{"aten::reciprocal", Reads::kOutput, [](const Tensor& x, Constants) { return at::reciprocal(x); },
                  [](const Tensor& g, const Tensor& y, Constants) { return at::mul(y, y).neg_().mul_(g); }},
    UnaryFunction{"aten::square", Reads::kInput, [](const Tensor& x, Constants) { return at::mul(x, x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::mul(g, x).mul_(2); }},
    UnaryFunction{"aten::pow", Reads::kInput, [](const Tensor& x, Constants c) { return at::pow(x, c[0].toScalar()); },
                  [](const Tensor& g, const Tensor& x, Constants c) { return pow_backward(g, x, c[0].toScalar()); }},
    UnaryFunction{"aten::sin", Reads::kInput, [](const Tensor& x, Constants) { return at::sin(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::cos(x).mul_(g); }},
    UnaryFunction{"aten::cos", Reads::kInput, [](const Tensor& x, Constants) { return at::cos(x); },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::sin(x).neg_().mul_(g); }},
    UnaryFunction{"aten::erf", Reads::kInput, [](const Tensor& x, Constants) { return at::erf(x); },
                  [](const Tensor& g, const Tensor& x, Constants) {
                    return at::mul(x, x).neg_().exp_().mul_(2 * std::numbers::inv_sqrtpi).mul_(g);
                  }},
    UnaryFunction{
        "aten::clamp", Reads::kInput,
        [](const Tensor& x, Constants c) { return at::clamp(x, optional_scalar(c[0]), optional_scalar(c[1])); },
        clamp_backward, /*temporaries=*/1},
    UnaryFunction{
        "aten::clamp_min", Reads::kInput,
        [](const Tensor& x, Constants c) { return at::clamp_min(x, c[0].toScalar()); },
        [](const Tensor& g, const Tensor& x, Constants c) { return at::where(at::ge(x, c[0].toScalar()), g, 0); },
        /*temporaries=*/1},
    UnaryFunction{
        "aten::clamp_max", Reads::kInput,
        [](const Tensor& x, Constants c) { return at::clamp_max(x, c[0].toScalar()); },
        [](const Tensor& g, const Tensor& x, Constants c) { return at::where(at::le(x, c[0].toScalar()), g, 0); },
        /*temporaries=*/1},
    UnaryFunction{"aten::nan_to_num", Reads::kInput,
                  [](const Tensor& x, Constants c) {
                    return at::nan_to_num(x, optional_double(c[0]), optional_double(c[1]), optional_double(c[2]));
                  },
                  [](const Tensor& g, const Tensor& x, Constants) { return at::where(at::isfinite(x), g, 0); },
                  /*temporaries=*/2},
};

constexpr std::array kCumulativeSum{
    UnaryFunction{"aten::cumsum", Reads::kNothing,
                  [](const Tensor& x, Constants c) { return at::cumsum(x, c[0].toInt()); },
                  [](const Tensor& g, const Tensor&, Constants c) {
                    return at::flip(g, {c[0].toInt()}).cumsum(c[0].toInt()).flip({c[0].toInt()});
                  },
                  /*temporaries=*/2},
};

}  // namespace

std::unique_ptr<Instruction> make_math_function(const NodeContext& context) { return make_unary(context, kFunctions); }

std::unique_ptr<Instruction> make_cumulative_sum(const NodeContext& context) {
  return make_unary(context, kCumulativeSum);
}

bool cumulative_sum_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return unary_has_instruction(graph, node) && keeps_type(graph, node, 2);
}

}  // namespace tutti::program
