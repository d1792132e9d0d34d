// Arithmetic and selection against LibTorch's autograd, broadcast in every position.
#include "operator_case.h"

namespace tutti::testing {
namespace {

class ArithmeticTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(ArithmeticTest, EqualsAutograd) { expect_equals_island(GetParam()); }

using Operands = std::vector<TestOperand>;

/// Shapes of two operands that are broadcast against each other.
std::vector<std::pair<std::string, Operands>> shapes() {
  return {{"equal", {rows_of({3, 4}), rows_of({3, 4})}},
          {"vector", {rows_of({3, 4}), fixed({4})}},
          {"vector_first", {fixed({4}), rows_of({3, 4})}},
          {"column", {rows_of({3, 4}), fixed({3, 1})}},
          {"rows_of_one", {rows_of({3, 1}), rows_of({1, 4})}},
          {"batch_of_one", {fixed({1, 3, 4}), rows_of({3, 1})}},
          {"scalar", {rows_of({3, 4}), fixed({})}},
          {"without_batch", {fixed({2, 1, 4}), fixed({3, 1})}}};
}

OperatorCase binary(const std::string& name, const std::string& suffix, const Operands& operands,
                    const std::vector<Argument>& constants, const std::string& overload = "Tensor") {
  return {name + "_" + suffix, "aten::" + name, overload, operands, followed_by(constants)};
}

Operands in_range(Operands operands, double low, double high) {
  for (TestOperand& operand : operands) operand = between(low, high, operand);
  return operands;
}

Operands with_ties(Operands operands) {
  for (TestOperand& operand : operands) operand = rounded(operand);
  return operands;
}

std::vector<OperatorCase> tensors() {
  std::vector<OperatorCase> cases;
  for (const auto& [suffix, operands] : shapes()) {
    cases.push_back(binary("add", suffix, operands, {integer(1)}));
    cases.push_back(binary("add", suffix + "_scaled", operands, {number(-2.5)}));
    cases.push_back(binary("sub", suffix, operands, {integer(1)}));
    cases.push_back(binary("sub", suffix + "_scaled", operands, {number(0.5)}));
    cases.push_back(binary("rsub", suffix, operands, {integer(1)}));
    cases.push_back(binary("mul", suffix, operands, {}));
    cases.push_back(binary("div", suffix, in_range(operands, 0.5, 3), {}));
    cases.push_back(binary("maximum", suffix, with_ties(operands), {}, ""));
    cases.push_back(binary("minimum", suffix, with_ties(operands), {}, ""));
    cases.push_back(binary("max", suffix, operands, {}, "other"));
    if (suffix.find("first") == std::string::npos && suffix.find("one") == std::string::npos) {
      const auto above = [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
        return {Argument::of(ids[0]), Argument::none(), Argument::of(ids[1])};
      };
      cases.push_back(binary("clamp_min", suffix, with_ties(operands), {}));
      cases.push_back(binary("clamp_max", suffix, with_ties(operands), {}));
      cases.push_back(binary("clamp", suffix + "_below", with_ties(operands), {Argument::none()}));
      cases.push_back({"clamp_" + suffix + "_above", "aten::clamp", "Tensor", operands, above});
    }
    cases.push_back({"addcmul_" + suffix,
                     "aten::addcmul",
                     "",
                     {fixed({4}), operands[0], operands[1]},
                     followed_by({number(-0.5)})});
    cases.push_back(binary("min", suffix, operands, {}, "other"));
  }
  return cases;
}

/// Python numbers, also where the schema says Tensor.
std::vector<OperatorCase> numbers() {
  std::vector<OperatorCase> cases;
  const Operands operand = in_range({rows_of({3, 4})}, 0.5, 3);
  for (const std::string overload : {"Tensor", "Scalar"}) {
    cases.push_back(binary("add", "number_" + overload, operand, {number(0.3), integer(1)}, overload));
    cases.push_back(binary("sub", "number_" + overload, operand, {integer(2), number(0.5)}, overload));
    cases.push_back(binary("rsub", "number_" + overload, operand, {number(1.5), integer(2)}, overload));
    cases.push_back(binary("mul", "number_" + overload, operand, {number(0.3)}, overload));
    cases.push_back(binary("div", "number_" + overload, operand, {integer(3)}, overload));
  }
  const auto number_first = [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
    return {number(2.5), Argument::of(ids[0])};
  };
  cases.push_back({"mul_number_first", "aten::mul", "Tensor", operand, number_first});
  cases.push_back({"div_number_first", "aten::div", "Tensor", operand, number_first});
  return cases;
}

/// The same value as both operands.
std::vector<OperatorCase> repeated() {
  std::vector<OperatorCase> cases;
  const auto twice = [](std::vector<Argument> rest) {
    return [rest](const std::vector<ValueId>& ids) {
      std::vector<Argument> arguments{Argument::of(ids[0]), Argument::of(ids[0])};
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      return arguments;
    };
  };
  for (const TestOperand& operand : {rows_of({3, 4}), fixed({3, 4})}) {
    const std::string suffix = operand.has_rows ? "_twice" : "_twice_fixed";
    cases.push_back({"add" + suffix, "aten::add", "Tensor", {operand}, twice({integer(1)})});
    cases.push_back({"sub" + suffix, "aten::sub", "Tensor", {operand}, twice({number(0.5)})});
    cases.push_back({"rsub" + suffix, "aten::rsub", "Tensor", {operand}, twice({number(0.5)})});
    cases.push_back({"mul" + suffix, "aten::mul", "Tensor", {operand}, twice({})});
    cases.push_back({"div" + suffix, "aten::div", "Tensor", {between(0.5, 2, operand)}, twice({})});
    cases.push_back({"maximum" + suffix, "aten::maximum", "", {operand}, twice({})});
  }
  return cases;
}

std::vector<OperatorCase> selections() {
  std::vector<OperatorCase> cases;
  const TestOperand mask = of_type(at::kBool, rows_of({3, 4}));
  const TestOperand narrow_mask = of_type(at::kBool, rows_of({1, 4}));
  for (const auto& [suffix, operands] : shapes()) {
    if (suffix == "without_batch") continue;
    cases.push_back({"where_" + suffix, "aten::where", "self", {mask, operands[0], operands[1]}, followed_by({})});
    cases.push_back({"where_narrow_mask_" + suffix,
                     "aten::where",
                     "self",
                     {narrow_mask, operands[0], operands[1]},
                     followed_by({})});
  }
  cases.push_back({"where_number", "aten::where", "ScalarOther", {mask, rows_of({3, 1})}, followed_by({number(-1)})});
  cases.push_back({"where_number_chosen",
                   "aten::where",
                   "ScalarSelf",
                   {mask, rows_of({3, 1})},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {Argument::of(ids[0]), number(0.5), Argument::of(ids[1])};
                   }});
  cases.push_back({"masked_fill", "aten::masked_fill", "Scalar", {rows_of({3, 4}), mask}, followed_by({number(-7)})});
  cases.push_back({"masked_fill_narrow_mask",
                   "aten::masked_fill",
                   "Scalar",
                   {rows_of({3, 4}), narrow_mask},
                   followed_by({integer(-7)})});
  cases.push_back(
      {"masked_fill_tensor", "aten::masked_fill", "Tensor", {rows_of({3, 4}), mask, fixed({})}, followed_by({})});
  cases.push_back({"where_twice",
                   "aten::where",
                   "self",
                   {mask, rows_of({3, 4})},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {Argument::of(ids[0]), Argument::of(ids[1]), Argument::of(ids[1])};
                   }});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Tensors, ArithmeticTest, ::testing::ValuesIn(in_both_precisions(tensors())), run_name);
INSTANTIATE_TEST_SUITE_P(Numbers, ArithmeticTest, ::testing::ValuesIn(in_both_precisions(numbers())), run_name);
INSTANTIATE_TEST_SUITE_P(Repeated, ArithmeticTest, ::testing::ValuesIn(in_both_precisions(repeated())), run_name);
INSTANTIATE_TEST_SUITE_P(Selections, ArithmeticTest, ::testing::ValuesIn(in_both_precisions(selections())), run_name);

using Engine = program::CompileOptions::Engine;

TEST(Arithmetic, WholeNumbersStayWhole) {
  NodeGraph graph;
  const ValueId tokens = graph.input({4}, at::kLong);
  const ValueId next = graph.call("aten::add", "Tensor", {Argument::of(tokens), integer(1), integer(1)});
  const ValueId doubled = graph.call("aten::mul", "Tensor", {Argument::of(next), integer(2)});
  graph.output(doubled);
  for (const Engine engine : {Engine::kInstructions, Engine::kIsland}) {
    BoundModel model(compile(graph, engine));
    const at::Tensor found = model.forward({at::arange(8, at::kLong).view({2, 4})}, /*training=*/false);
    EXPECT_TRUE(at::equal(found, at::arange(8, at::kLong).view({2, 4}).add(1).mul(2))) << found;
  }
}

TEST(Arithmetic, AGradientThatTwoOperandsShareIsNotChangedForBoth) {
  at::manual_seed(3);
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId left = graph.linear(input, 4), right = graph.linear(input, 4);
  const ValueId early = graph.call("aten::tanh", "", {Argument::of(left)});
  const ValueId sum = graph.add_values(left, right);
  graph.output(graph.call("aten::cat", "", {Argument::list({sum, early}), integer(1)}));
  BoundModel own(compile(graph, Engine::kInstructions)), oracle(compile(graph, Engine::kIsland));
  expect_equal_runs(own, oracle, {at::randn({3, 4}, at::kDouble)}, 1e-12);
}

}  // namespace
}  // namespace tutti::testing
