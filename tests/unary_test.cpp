// Activations, functions of real numbers, running sums and softmax against LibTorch's autograd.
#include "operator_case.h"

namespace tutti::testing {
namespace {

class UnaryTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(UnaryTest, EqualsAutograd) { expect_equals_island(GetParam()); }

/// A batch of rows and a tensor without a batch.
void add(std::vector<OperatorCase>& cases, const std::string& name, const std::vector<Argument>& constants,
         const TestOperand& range = {}, const std::string& overload = "", const std::string& suffix = "") {
  for (const bool has_rows : {true, false}) {
    TestOperand operand = range;
    operand.shape = {4, 6};
    operand.has_rows = has_rows;
    cases.push_back(
        {name + suffix + (has_rows ? "" : "_fixed"), "aten::" + name, overload, {operand}, followed_by(constants)});
  }
}

std::vector<OperatorCase> activations() {
  std::vector<OperatorCase> cases;
  const TestOperand wide = between(-5, 5, {});
  const TestOperand whole = rounded(wide);
  add(cases, "celu", {number(0.5)});  // LibTorch rounds 1 / alpha to float32 in the gradient: exact here
  add(cases, "elu", {number(0.7), integer(1), integer(1)});
  add(cases, "elu", {number(0.7), number(1.1), number(0.9)}, {}, "", "_scaled");
  add(cases, "gelu", {text("none")});
  add(cases, "gelu", {text("tanh")}, {}, "", "_tanh");
  add(cases, "glu", {integer(-1)});
  add(cases, "glu", {integer(1)}, {}, "", "_dim1");
  add(cases, "hardsigmoid", {}, whole);
  add(cases, "hardswish", {}, wide);
  add(cases, "hardtanh", {integer(-1), integer(1)}, whole);
  add(cases, "leaky_relu", {number(0.1)});
  add(cases, "log_sigmoid", {}, wide);
  add(cases, "mish", {}, wide);
  add(cases, "relu", {});
  add(cases, "relu6", {}, between(-3, 9, {}));
  add(cases, "selu", {});
  add(cases, "sigmoid", {});
  add(cases, "silu", {});
  add(cases, "softplus", {integer(2), integer(1)});
  add(cases, "tanh", {});
  add(cases, "threshold", {number(0.5), number(-3)});
  return cases;
}

std::vector<OperatorCase> math_functions() {
  std::vector<OperatorCase> cases;
  const TestOperand positive = between(0.3, 3, {});
  const TestOperand whole = rounded(between(-4, 4, {}));
  add(cases, "abs", {}, whole);
  add(cases, "clamp", {integer(-1), number(1)}, whole);
  add(cases, "clamp", {Argument::none(), number(0.5)}, {}, "", "_above");
  add(cases, "clamp", {number(-0.5), Argument::none()}, {}, "", "_below");
  add(cases, "clamp_max", {integer(1)}, whole);
  add(cases, "clamp_min", {integer(-1)}, whole);
  add(cases, "cos", {});
  add(cases, "erf", {});
  add(cases, "exp", {});
  add(cases, "expm1", {});
  add(cases, "log", {}, positive);
  add(cases, "log1p", {}, positive);
  add(cases, "nan_to_num", {number(0), Argument::none(), Argument::none()});
  add(cases, "neg", {});
  add(cases, "pow", {integer(2)}, {}, "Tensor_Scalar", "_2");
  add(cases, "pow", {integer(3)}, {}, "Tensor_Scalar", "_3");
  add(cases, "pow", {number(-0.7)}, positive, "Tensor_Scalar", "_negative");
  add(cases, "pow", {integer(0)}, positive, "Tensor_Scalar", "_0");
  add(cases, "reciprocal", {}, positive);
  add(cases, "rsqrt", {}, positive);
  add(cases, "sin", {});
  add(cases, "sqrt", {}, positive);
  add(cases, "square", {});
  add(cases, "cumsum", {integer(-1), Argument::none()});
  add(cases, "cumsum", {integer(1), Argument::none()}, {}, "", "_dim1");
  add(cases, "softmax", {integer(-1), Argument::none()}, {}, "int");
  add(cases, "softmax", {integer(1), Argument::none()}, {}, "int", "_dim1");
  add(cases, "log_softmax", {integer(-1), Argument::none()}, {}, "int");
  add(cases, "_softmax", {integer(1), flag(false)}, {}, "");
  add(cases, "_log_softmax", {integer(1), flag(false)}, {}, "");
  return cases;
}

std::vector<OperatorCase> prelu() {
  return {{"prelu_channels", "aten::prelu", "", {rows_of({4, 3}), fixed({4})}, followed_by({})},
          {"prelu_one", "aten::prelu", "", {rows_of({4, 3}), fixed({1})}, followed_by({})},
          {"prelu_columns", "aten::prelu", "", {rows_of({4}), fixed({4})}, followed_by({})}};
}

INSTANTIATE_TEST_SUITE_P(Activations, UnaryTest, ::testing::ValuesIn(in_both_precisions(activations())), run_name);
INSTANTIATE_TEST_SUITE_P(Functions, UnaryTest, ::testing::ValuesIn(in_both_precisions(math_functions())), run_name);
INSTANTIATE_TEST_SUITE_P(Prelu, UnaryTest, ::testing::ValuesIn(in_both_precisions(prelu())), run_name);

TEST(Unary, NanToNumPassesNoGradientWhereTheInputIsNotFinite) {
  using Engine = program::CompileOptions::Engine;
  NodeGraph graph;
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor values = at::tensor({1.0, std::numeric_limits<double>::quiet_NaN(), infinity, -infinity});
  graph.output(graph.call("aten::nan_to_num", "",
                          {Argument::of(graph.parameter(values)), number(0.5), number(2), Argument::none()}));
  BoundModel own(compile(graph, Engine::kInstructions)), oracle(compile(graph, Engine::kIsland));
  EXPECT_TRUE(near(own.forward({}), oracle.forward({}), 0));
  own.backward(at::ones({4}, at::kDouble));
  oracle.backward(at::ones({4}, at::kDouble));
  EXPECT_TRUE(near(own.gradients[0], oracle.gradients[0], 0));
}

}  // namespace
}  // namespace tutti::testing
