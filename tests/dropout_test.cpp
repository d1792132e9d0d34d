// Dropout against masks drawn word by word from the documented Philox counters.
#include "src/program/dropout.h"

#include <ATen/Parallel.h>

#include <functional>

#include "data/philox.h"
#include "node_graph.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;
using program::RandomPosition;

RandomPosition position_of(int64_t first_row) {
  RandomPosition position;
  position.key = data::RandomKey::of(42, "dropout");
  position.step = 7;
  position.micro_batch = 3;
  position.first_row = first_row;
  return position;
}

/// The factor of one element, by the definition in the design.
double factor(const RandomPosition& position, int64_t node, double probability, int64_t row, int64_t element) {
  const data::PhiloxWords words =
      data::philox(position.key, {uint32_t(element / 4), uint32_t(position.first_row + row),
                                  uint32_t(node) | position.micro_batch << 16, position.step});
  return data::uniform_float(words[element % 4]) >= probability ? 1 / (1 - probability) : 0;
}

at::Tensor expected_mask(const RandomPosition& position, int64_t node, double probability, at::IntArrayRef shape) {
  at::Tensor mask = at::empty(shape, at::kDouble);
  const at::Tensor rows = mask.view({shape[0], -1});
  for (int64_t row = 0; row < rows.size(0); ++row) {
    for (int64_t e = 0; e < rows.size(1); ++e) rows[row][e] = factor(position, node, probability, row, e);
  }
  return mask;
}

class DropoutTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }
};

/// x -> linear (node 0) -> dropout (node 1) -> output.
NodeGraph dropout_after_linear(double probability) {
  at::manual_seed(5);
  NodeGraph graph;
  graph.output(graph.dropout(graph.linear(graph.input({3}), 7), probability));
  return graph;
}

TEST_P(DropoutTest, OutputAndGradientAreMultipliedByThePhiloxMask) {
  const double probability = 0.3;
  BoundModel model(compile(dropout_after_linear(probability), GetParam()));
  model.frame.random = position_of(100);
  const at::Tensor input = at::randn({5, 3}, at::kDouble);
  const at::Tensor mask = expected_mask(position_of(100), /*node=*/1, probability, {5, 7});
  const at::Tensor plain = at::linear(input, model.parameters[0], model.parameters[1]);
  EXPECT_TRUE(near(model.forward({input}), plain * mask, 1e-14));

  const at::Tensor gradient = at::randn({5, 7}, at::kDouble);
  model.backward(gradient.clone());
  EXPECT_TRUE(near(model.gradients[1], (gradient * mask).sum(0), 1e-12));
  EXPECT_TRUE(near(model.gradients[0], (gradient * mask).t().mm(input), 1e-12));
}

TEST_P(DropoutTest, AGrainDrawsTheRowsOfTheWholeBatch) {
  BoundModel model(compile(dropout_after_linear(0.5), GetParam()));
  const at::Tensor input = at::randn({8, 3}, at::kDouble);
  model.frame.random = position_of(0);
  const at::Tensor whole = model.forward({input}).clone();
  model.program->clear(model.frame);
  model.frame.random = position_of(5);
  const at::Tensor part = model.forward({input.narrow(0, 5, 3)});
  EXPECT_TRUE(near(part, whole.narrow(0, 5, 3), 1e-14));
}

/// A linear layer [batch, times, 4], its result brought into another order by `arrange`, dropout, and the order of
/// `restore`, with the shape that the graph has between the two.
struct Rearranged {
  std::vector<int64_t> shape;  ///< with kBatch where the batch is
  std::function<ValueId(NodeGraph&, ValueId)> arrange, restore;

  NodeGraph graph() const {
    at::manual_seed(5);
    NodeGraph graph;
    const ValueId arranged = arrange(graph, graph.linear(graph.input({3, 2}), 4));
    const ValueId dropped = graph.dropout(arranged, 0.5);
    for (const ValueId id : {arranged, dropped}) graph.graph().values[id].shape = shape;
    const ValueId restored = restore(graph, dropped);
    graph.graph().values[restored].shape = {graph::kBatch, 3, 4};
    graph.output(restored);
    return graph;
  }
};

ValueId swap_times_and_batch(NodeGraph& graph, ValueId value) {
  return graph.call("aten::transpose", "int", {Argument::of(value), integer(0), integer(1)});
}

Rearranged times_first() { return {{3, graph::kBatch, 4}, swap_times_and_batch, swap_times_and_batch}; }

Rearranged times_in_the_batch() {
  return {{3 * graph::kBatch, 4},
          [](NodeGraph& graph, ValueId value) {
            return graph.call("aten::reshape", "", {Argument::of(value), integers({-1, 4})});
          },
          [](NodeGraph& graph, ValueId value) {
            return graph.call("aten::reshape", "", {Argument::of(value), integers({-1, 3, 4})});
          }};
}

TEST_P(DropoutTest, ARowHasTheSameMaskWhereverTheBatchLies) {
  const at::Tensor input = at::randn({6, 3, 2}, at::kDouble);
  for (const Rearranged& rearranged : {times_first(), times_in_the_batch()}) {
    BoundModel model(compile(rearranged.graph(), GetParam()));
    model.frame.random = position_of(10);
    const at::Tensor plain = at::linear(input, model.parameters[0], model.parameters[1]);
    const at::Tensor mask = expected_mask(position_of(10), /*node=*/2, 0.5, {6, 3, 4});
    EXPECT_TRUE(near(model.forward({input}), plain * mask, 1e-14)) << rearranged.shape;
    model.backward(at::ones({6, 3, 4}, at::kDouble));
    EXPECT_TRUE(near(model.gradients[1], mask.flatten(0, 1).sum(0), 1e-13)) << rearranged.shape;

    model.frame.random = position_of(14);
    EXPECT_TRUE(near(model.forward({input.narrow(0, 4, 2)}), (plain * mask).narrow(0, 4, 2), 1e-14))
        << rearranged.shape << " in a grain";
  }
}

TEST_P(DropoutTest, AValueWithoutABatchHasOneMaskInAllGrains) {
  at::manual_seed(5);
  NodeGraph graph;
  const ValueId dropped = graph.dropout(graph.parameter(at::randn({3, 4}, at::kDouble)), 0.5);
  graph.output(graph.add_values(graph.input({3, 4}), dropped));
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor mask = expected_mask(position_of(0), /*node=*/0, 0.5, {1, 3, 4});
  for (const int64_t first_row : {0, 5}) {
    model.frame.random = position_of(first_row);
    EXPECT_TRUE(
        near(model.forward({at::zeros({2, 3, 4}, at::kDouble)}), (model.parameters[0] * mask).expand({2, 3, 4}), 1e-14))
        << first_row;
    model.program->clear(model.frame);
  }
}

TEST_P(DropoutTest, EvaluationPassesThrough) {
  BoundModel model(compile(dropout_after_linear(0.5), GetParam()));
  const at::Tensor input = at::randn({8, 3}, at::kDouble);
  const at::Tensor plain = at::linear(input, model.parameters[0], model.parameters[1]);
  EXPECT_TRUE(near(model.forward({input}, /*training=*/false), plain, 1e-14));
}

TEST_P(DropoutTest, ProbabilityOneDropsEverythingAndZeroNothing) {
  const at::Tensor input = at::randn({4, 3}, at::kDouble);
  for (const double probability : {0.0, 1.0}) {
    BoundModel model(compile(dropout_after_linear(probability), GetParam()));
    const at::Tensor plain = at::linear(input, model.parameters[0], model.parameters[1]);
    EXPECT_TRUE(near(model.forward({input}), plain * (1 - probability), 1e-14)) << probability;
    model.backward(at::ones({4, 7}, at::kDouble));
    EXPECT_TRUE(near(model.gradients[1], at::full({7}, 4 * (1 - probability), at::kDouble), 1e-14)) << probability;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, DropoutTest, ::testing::Values(Engine::kInstructions, Engine::kIsland),
                         [](const auto& info) { return info.param == Engine::kIsland ? "island" : "instruction"; });

TEST(Dropout, KeepsTheShareThatItShould) {
  for (const double probability : {0.1, 0.5, 0.9}) {
    const at::Tensor mask =
        program::dropout_mask({100, 1000}, position_of(0), program::DropoutSite{0, probability}, at::kDouble);
    const double kept = mask.ne(0).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(kept, 1 - probability, 0.006) << probability;  // four standard deviations at 0.5
  }
}

TEST(Dropout, StepsMicroBatchesAndNodesDrawDifferentMasks) {
  const program::DropoutSite site{4, 0.5};
  const auto draw = [](const RandomPosition& position, const program::DropoutSite& place) {
    return program::dropout_mask({16, 64}, position, place, at::kFloat);
  };
  const at::Tensor base = draw(position_of(0), site);
  RandomPosition other_step = position_of(0), other_micro_batch = position_of(0), other_key = position_of(0);
  ++other_step.step;
  ++other_micro_batch.micro_batch;
  other_key.key = data::RandomKey::of(43, "dropout");
  EXPECT_FALSE(at::equal(base, draw(other_step, site)));
  EXPECT_FALSE(at::equal(base, draw(other_micro_batch, site)));
  EXPECT_FALSE(at::equal(base, draw(other_key, site)));
  EXPECT_FALSE(at::equal(base, draw(position_of(0), {5, 0.5})));
  EXPECT_TRUE(at::equal(base, draw(position_of(0), site)));
}

TEST(Dropout, TheNativeFormDrawsTheSameMask) {
  for (const Argument& training : {flag(true), Argument::none()}) {
    at::manual_seed(5);
    NodeGraph graph;
    graph.output(graph.call("aten::native_dropout", "",
                            {Argument::of(graph.linear(graph.input({3}), 7)), number(0.3), training}));
    graph.graph().nodes.back().outputs.push_back(graph::kNoValue);
    BoundModel model(compile(graph, Engine::kInstructions));
    model.frame.random = position_of(100);
    const at::Tensor input = at::randn({5, 3}, at::kDouble);
    const at::Tensor plain = at::linear(input, model.parameters[0], model.parameters[1]);
    const at::Tensor mask = expected_mask(position_of(100), /*node=*/1, 0.3, {5, 7});
    EXPECT_TRUE(near(model.forward({input}), plain * mask, 1e-14));
    EXPECT_TRUE(near(model.forward({input}, /*training=*/false), plain, 1e-14));
  }
}

TEST(Dropout, RefusesAProbabilityOutsideZeroToOne) {
  NodeGraph graph = dropout_after_linear(0.5);
  graph.graph().nodes[1].arguments[1] = number(1.5);
  EXPECT_THROW(compile(graph, Engine::kInstructions), graph::GraphError);
  EXPECT_THROW(compile(graph, Engine::kIsland), graph::GraphError);
}

}  // namespace
}  // namespace tutti::testing
