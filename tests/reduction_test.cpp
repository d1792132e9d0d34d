// Reductions against LibTorch's autograd.
#include "operator_case.h"

namespace tutti::testing {
namespace {

class ReductionTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(ReductionTest, EqualsAutograd) { expect_equals_island(GetParam()); }

/// Each over one and several dimensions, kept and dropped, of a batch and of a tensor without one.
std::vector<OperatorCase> over_dimensions() {
  std::vector<OperatorCase> cases;
  const auto add = [&](const std::string& name, const std::string& target, const std::string& overload,
                       const TestOperand& range, const std::function<std::vector<Argument>(Argument, Argument)>& rest) {
    for (const bool has_rows : {true, false}) {
      for (const bool keeps : {true, false}) {
        for (const std::vector<int64_t>& dimensions : {std::vector<int64_t>{-1}, std::vector<int64_t>{2, 1}}) {
          TestOperand operand = range;
          operand.shape = has_rows ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{2, 3, 4};
          operand.has_rows = has_rows;
          cases.push_back(
              {name + (dimensions.size() == 1 ? "_last" : "_two") + (keeps ? "_kept" : "") + (has_rows ? "" : "_fixed"),
               target,
               overload,
               {operand},
               followed_by(rest(integers(dimensions), flag(keeps)))});
        }
      }
    }
  };
  using Rest = std::vector<Argument>;
  const TestOperand any, ties = rounded(any);
  const auto plain = [](Argument dim, Argument keeps) -> Rest { return {dim, keeps}; };
  const auto typed = [](Argument dim, Argument keeps) -> Rest { return {dim, keeps, Argument::none()}; };
  const auto norm = [](double order) {
    return [order](Argument dim, Argument keeps) -> Rest { return {number(order), dim, keeps, Argument::none()}; };
  };
  const auto unbiased = [](bool is_unbiased) {
    return [is_unbiased](Argument dim, Argument keeps) -> Rest { return {dim, flag(is_unbiased), keeps}; };
  };
  const auto corrected = [](Argument correction) {
    return [correction](Argument dim, Argument keeps) -> Rest { return {dim, correction, keeps}; };
  };
  add("sum", "aten::sum", "dim_IntList", any, typed);
  add("mean", "aten::mean", "dim", any, typed);
  add("amax", "aten::amax", "", ties, plain);
  add("amin", "aten::amin", "", ties, plain);
  add("logsumexp", "aten::logsumexp", "", any, plain);
  add("norm2", "aten::linalg_vector_norm", "", any, norm(2));
  add("norm1", "aten::linalg_vector_norm", "", any, norm(1));
  add("var_unbiased", "aten::var", "dim", any, unbiased(true));
  add("var_biased", "aten::var", "dim", any, unbiased(false));
  add("std_unbiased", "aten::std", "dim", any, unbiased(true));
  add("var_default", "aten::var", "correction", any, corrected(Argument::none()));
  add("std_corrected", "aten::std", "correction", any, corrected(number(0.5)));
  return cases;
}

/// Over everything, the batch too.
std::vector<OperatorCase> over_everything() {
  std::vector<OperatorCase> cases;
  for (const bool has_rows : {true, false}) {
    const TestOperand operand{{3, 4}, has_rows};
    const std::string suffix = has_rows ? "" : "_fixed";
    const Argument none = Argument::none();
    cases.push_back({"sum_all" + suffix, "aten::sum", "", {operand}, followed_by({none})});
    cases.push_back({"mean_all" + suffix, "aten::mean", "", {operand}, followed_by({none})});
    cases.push_back({"mean_dim_none" + suffix, "aten::mean", "dim", {operand}, followed_by({none, flag(false), none})});
    cases.push_back({"amax_all" + suffix, "aten::amax", "", {operand}, followed_by({integers({}), flag(false)})});
    cases.push_back({"norm_all" + suffix,
                     "aten::linalg_vector_norm",
                     "",
                     {operand},
                     followed_by({integer(2), none, flag(false), none})});
    cases.push_back(
        {"sum_rows" + suffix, "aten::sum", "dim_IntList", {operand}, followed_by({integers({0}), flag(true), none})});
    cases.push_back(
        {"mean_rows" + suffix, "aten::mean", "dim", {operand}, followed_by({integers({0, 1}), flag(false), none})});
  }
  return cases;
}

std::vector<OperatorCase> extremes() {
  std::vector<OperatorCase> cases;
  for (const bool has_rows : {true, false}) {
    for (const bool keeps : {true, false}) {
      for (const std::string name : {"max", "min"}) {
        const TestOperand operand = rounded({{3, 4}, has_rows});
        cases.push_back({name + "_dim" + (keeps ? "_kept" : "") + (has_rows ? "" : "_fixed"),
                         "aten::" + name,
                         "dim",
                         {operand},
                         followed_by({integer(1), flag(keeps)}),
                         /*result_count=*/2});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dimensions, ReductionTest, ::testing::ValuesIn(in_both_precisions(over_dimensions())),
                         run_name);
INSTANTIATE_TEST_SUITE_P(Everything, ReductionTest, ::testing::ValuesIn(in_both_precisions(over_everything())),
                         run_name);

INSTANTIATE_TEST_SUITE_P(Extremes, ReductionTest, ::testing::ValuesIn(in_both_precisions(extremes())), run_name);

TEST(Reduction, ANormOfZeroHasNoGradient) {
  using Engine = program::CompileOptions::Engine;
  NodeGraph graph;
  const ValueId zeros = graph.parameter(at::zeros({2, 3}, at::kDouble));
  graph.output(graph.call("aten::linalg_vector_norm", "",
                          {Argument::of(zeros), integer(2), integers({1}), flag(false), Argument::none()}));
  BoundModel model(compile(graph, Engine::kInstructions));
  model.forward({});
  model.backward(at::ones({2}, at::kDouble));
  EXPECT_TRUE(at::equal(model.gradients[0], at::zeros({2, 3}, at::kDouble))) << model.gradients[0];
}

}  // namespace
}  // namespace tutti::testing
