// Matrix products and einsum against LibTorch's autograd.
#include "operator_case.h"

namespace tutti::testing {
namespace {

class ProductTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(ProductTest, EqualsAutograd) { expect_equals_island(GetParam()); }

std::vector<OperatorCase> products() {
  const auto make = [](std::string name, const std::string& target, TestOperand left, TestOperand right) {
    return OperatorCase{std::move(name), target, "", {std::move(left), std::move(right)}, followed_by({})};
  };
  const std::string matmul = "aten::matmul";
  return {make("mm", "aten::mm", rows_of({4}), fixed({4, 5})),
          make("mm_fixed", "aten::mm", fixed({3, 4}), fixed({4, 5})),
          make("bmm", "aten::bmm", rows_of({3, 4}), rows_of({4, 5})),
          make("mv", "aten::mv", rows_of({4}), fixed({4})),
          make("dot", "aten::dot", fixed({4}), fixed({4})),
          make("vdot", "aten::vdot", fixed({4}), fixed({4})),
          make("vector_vector", matmul, fixed({4}), fixed({4})),
          make("vector_matrix", matmul, fixed({4}), fixed({4, 3})),
          make("vector_stack", matmul, fixed({4}), rows_of({4, 3})),
          make("matrix_vector", matmul, rows_of({4}), fixed({4})),
          make("stack_vector", matmul, rows_of({3, 4}), fixed({4})),
          make("stack_matrix", matmul, rows_of({3, 4}), fixed({4, 5})),
          make("matrix_stack", matmul, fixed({3, 4}), rows_of({4, 5})),
          make("deep_stack_matrix", matmul, rows_of({2, 3, 4}), fixed({4, 5})),
          make("matrix_deep_stack", matmul, fixed({3, 4}), rows_of({2, 4, 5})),
          make("stacks", matmul, rows_of({2, 3, 4}), rows_of({2, 4, 5})),
          make("stack_of_heads", matmul, rows_of({2, 3, 4}), fixed({2, 4, 5})),
          make("heads_stack", matmul, fixed({2, 3, 4}), rows_of({2, 4, 5})),
          make("broadcast_both", matmul, rows_of({1, 3, 4}), rows_of({2, 4, 5})),
          make("broadcast_right", matmul, rows_of({2, 3, 4}), rows_of({1, 4, 5}))};
}

std::vector<OperatorCase> added() {
  std::vector<OperatorCase> cases;
  const auto add = [&](const std::string& target, const std::vector<TestOperand>& operands, const std::string& suffix) {
    const std::string name = target.substr(target.find("::") + 2) + "_" + suffix;
    cases.push_back({name, target, "", operands, followed_by({integer(1), integer(1)})});
    cases.push_back({name + "_scaled", target, "", operands, followed_by({number(0.5), number(-2)})});
  };
  add("aten::addmm", {rows_of({5}), rows_of({4}), fixed({4, 5})}, "full");
  add("aten::addmm", {fixed({5}), rows_of({4}), fixed({4, 5})}, "vector");
  add("aten::addmv", {fixed({1}), rows_of({4}), fixed({4})}, "one");
  add("aten::baddbmm", {rows_of({3, 5}), rows_of({3, 4}), rows_of({4, 5})}, "full");
  add("aten::baddbmm", {fixed({1, 5}), rows_of({3, 4}), rows_of({4, 5})}, "row");
  return cases;
}

std::vector<OperatorCase> einsums() {
  std::vector<OperatorCase> cases;
  const auto add = [&](std::string name, const char* equation, const std::vector<TestOperand>& operands) {
    cases.push_back({std::move(name), "aten::einsum", "", operands,
                     [equation](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                       return {text(equation), Argument::list(ids), Argument::none()};
                     }});
  };
  add("einsum_linear", "bi,oi->bo", {rows_of({4}), fixed({5, 4})});
  add("einsum_attention", "bhid, bhjd -> bhij", {rows_of({2, 3, 4}), rows_of({2, 5, 4})});
  add("einsum_values", "bhij,bjhd->bihd", {rows_of({2, 3, 5}), rows_of({5, 2, 4})});
  add("einsum_implicit", "bij,jk", {rows_of({3, 4}), fixed({4, 5})});
  add("einsum_elementwise", "bi,i->bi", {rows_of({4}), fixed({4})});
  add("einsum_outer", "bi,j->bij", {rows_of({4}), fixed({3})});
  add("einsum_transpose", "bij->bji", {rows_of({4, 3})});
  add("einsum_three", "bi,ij,bj->b", {rows_of({4}), fixed({4, 3}), rows_of({3})});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Matrices, ProductTest, ::testing::ValuesIn(in_both_precisions(products())), run_name);
INSTANTIATE_TEST_SUITE_P(Added, ProductTest, ::testing::ValuesIn(in_both_precisions(added())), run_name);
INSTANTIATE_TEST_SUITE_P(Einsum, ProductTest, ::testing::ValuesIn(in_both_precisions(einsums())), run_name);

TEST(Einsum, RunsAsAnIslandWhereAGradientIsNoEinsum) {
  using Engine = program::CompileOptions::Engine;
  for (const char* equation : {"bi->b", "bii->bi", "b...->b..."}) {
    NodeGraph graph;
    const ValueId x = graph.parameter(at::rand({2, 3, 3}, at::kDouble));
    const ValueId rows = std::string(equation) == "bi->b" ? graph.linear(graph.input({4}), 3) : x;
    graph.output(graph.call("aten::einsum", "", {text(equation), Argument::list({rows}), Argument::none()}));
    EXPECT_EQ(compile(graph, Engine::kInstructions)->islands(), std::vector<std::string>{"aten::einsum"}) << equation;
  }
}

}  // namespace
}  // namespace tutti::testing
