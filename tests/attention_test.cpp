// Scaled dot product attention against LibTorch's autograd; its dropout against masks of the documented counters.
#include <torch/csrc/autograd/autograd.h>

#include "data/philox.h"
#include "operator_case.h"
#include "src/program/dropout.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;

class AttentionTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(AttentionTest, EqualsAutograd) { expect_equals_island(GetParam()); }

struct Settings {
  double dropout = 0;
  bool is_causal = false;
  Argument scale = Argument::none();
  bool is_grouped = false;
};

/// Query, key, value and, where there is one, the mask.
std::vector<Argument> arguments_of(const std::vector<ValueId>& ids, const Settings& settings) {
  return {Argument::of(ids[0]),     Argument::of(ids[1]),
          Argument::of(ids[2]),     ids.size() == 4 ? Argument::of(ids[3]) : Argument::none(),
          number(settings.dropout), flag(settings.is_causal),
          settings.scale,           flag(settings.is_grouped)};
}

OperatorCase attention(std::string name, const std::vector<TestOperand>& operands, const Settings& settings = {}) {
  return {std::move(name), "aten::scaled_dot_product_attention", "", operands,
          [settings](const std::vector<ValueId>& ids) { return arguments_of(ids, settings); }};
}

std::vector<OperatorCase> cases() {
  const TestOperand query = rows_of({2, 5, 4}), key = rows_of({2, 7, 4}), value = rows_of({2, 7, 3});
  const Settings causal{.is_causal = true};
  const Settings scaled{.scale = number(0.3)};
  const Settings grouped{.is_grouped = true};
  return {attention("plain", {query, key, value}),
          attention("three_dimensions", {rows_of({5, 4}), rows_of({7, 4}), rows_of({7, 3})}),
          attention("without_batch", {fixed({5, 4}), fixed({7, 4}), fixed({7, 3})}),
          attention("causal", {query, key, value}, causal),
          attention("causal_tall", {rows_of({2, 7, 4}), rows_of({2, 5, 4}), rows_of({2, 5, 3})}, causal),
          attention("scaled", {query, key, value}, scaled),
          attention("real_mask", {query, key, value, rows_of({2, 5, 7})}),
          attention("real_mask_of_heads", {query, key, value, fixed({2, 5, 7})}),
          attention("real_mask_of_keys", {query, key, value, rows_of({1, 1, 7})}),
          attention("real_mask_of_places", {query, key, value, fixed({5, 7})}),
          attention("truth_mask", {query, key, value, of_type(at::kBool, rows_of({1, 5, 7}))}),
          attention("grouped", {rows_of({6, 5, 4}), rows_of({2, 7, 4}), rows_of({2, 7, 3})}, grouped)};
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionTest, ::testing::ValuesIn(in_both_precisions(cases())), run_name);

TEST(Attention, APlaceThatMayLookNowhereGetsZerosAndPassesNoGradient) {
  at::manual_seed(5);
  const OperatorCase masked =
      attention("masked", {fixed({2, 3, 4}), fixed({2, 3, 4}), fixed({2, 3, 4}), of_type(at::kBool, fixed({3, 3}))});
  NodeGraph graph;
  std::vector<ValueId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(graph.parameter(at::randn({2, 3, 4}, at::kDouble)));
  at::Tensor mask = at::ones({3, 3}, at::kBool);
  mask[1].zero_();
  ids.push_back(graph.constant(mask));
  graph.output(graph.call(masked.target, "", masked.arguments(ids)));
  BoundModel own(compile(graph, Engine::kInstructions)), oracle(compile(graph, Engine::kIsland));
  expect_equal_runs(own, oracle, {}, 1e-12);
  own.forward({});
  EXPECT_TRUE(at::equal(own.frame.values[graph.graph().outputs[0]].select(1, 1), at::zeros({2, 4}, at::kDouble)));
}

class AttentionDropoutTest : public ::testing::TestWithParam<Engine> {};

/// Values [rows, heads, places, channels] of a linear layer each, so that rows are told apart.
NodeGraph attention_with_dropout(double probability) {
  at::manual_seed(9);
  NodeGraph graph;
  const ValueId input = graph.input({2, 5, 4});
  const std::vector<ValueId> ids{graph.linear(input, 4), graph.linear(input, 4), graph.linear(input, 3)};
  graph.output(
      graph.call("aten::scaled_dot_product_attention", "", arguments_of(ids, Settings{.dropout = probability})));
  return graph;
}

program::RandomPosition position_of(int64_t first_row) {
  program::RandomPosition position;
  position.key = data::RandomKey::of(42, "dropout");
  position.step = 7;
  position.micro_batch = 3;
  position.first_row = first_row;
  return position;
}

TEST_P(AttentionDropoutTest, DropsProbabilitiesByThePhiloxMask) {
  const double probability = 0.3;
  BoundModel model(compile(attention_with_dropout(probability), GetParam()));
  model.frame.random = position_of(100);
  const at::Tensor input = at::randn({3, 2, 5, 4}, at::kDouble);
  std::vector<at::Tensor> p;
  for (const at::Tensor& parameter : model.parameters) p.push_back(parameter.clone().set_requires_grad(true));
  const at::Tensor q = at::linear(input, p[0], p[1]), k = at::linear(input, p[2], p[3]);
  const at::Tensor v = at::linear(input, p[4], p[5]);
  const program::DropoutSite site{.node = 3, .probability = probability};
  const at::Tensor mask = program::dropout_mask({3, 2, 5, 5}, position_of(100), site, at::kDouble);
  const at::Tensor expected = (at::softmax(q.matmul(k.transpose(-2, -1)) / 2, -1) * mask).matmul(v);
  EXPECT_TRUE(near(model.forward({input}), expected.detach(), 1e-13));
  const at::Tensor gradient = at::randn(expected.sizes(), at::kDouble);
  model.backward(gradient.clone());
  const std::vector<at::Tensor> gradients = torch::autograd::grad({expected}, p, {gradient});
  for (size_t i = 0; i < p.size(); ++i) {
    if (i == 3) continue;  // the key's bias has no influence: its gradient is rounding alone
    EXPECT_TRUE(near(model.gradients[i], gradients[i], 1e-11)) << i;
  }
}

TEST_P(AttentionDropoutTest, AGrainDrawsTheRowsOfTheWholeBatch) {
  BoundModel model(compile(attention_with_dropout(0.5), GetParam()));
  const at::Tensor input = at::randn({6, 2, 5, 4}, at::kDouble);
  model.frame.random = position_of(0);
  const at::Tensor whole = model.forward({input}).clone();
  model.program->clear(model.frame);
  model.frame.random = position_of(4);
  EXPECT_TRUE(near(model.forward({input.narrow(0, 4, 2)}), whole.narrow(0, 4, 2), 1e-13));
}

TEST_P(AttentionDropoutTest, EvaluationDropsNothing) {
  const at::Tensor input = at::randn({3, 2, 5, 4}, at::kDouble);
  BoundModel model(compile(attention_with_dropout(0.5), GetParam()));
  BoundModel plain(compile(attention_with_dropout(0), Engine::kIsland));
  EXPECT_TRUE(near(model.forward({input}, /*training=*/false), plain.forward({input}, false), 1e-13));
}

INSTANTIATE_TEST_SUITE_P(Engines, AttentionDropoutTest, ::testing::Values(Engine::kInstructions, Engine::kIsland),
                         [](const auto& info) { return info.param == Engine::kIsland ? "island" : "instruction"; });

}  // namespace
}  // namespace tutti::testing
