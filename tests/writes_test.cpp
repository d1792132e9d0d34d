// Writes in place: which are replaced by operators that make new tensors, which run as calls, and which need an island.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "probed_graph.h"
#include "src/graph/write_replacement.h"

namespace tutti::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using Engine = program::CompileOptions::Engine;

Argument of(ValueId id) { return Argument::of(id); }
Argument none() { return Argument::none(); }

class WritesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
    at::manual_seed(31);
    input_ = graph_.input({4, 6});
    scaled_ = graph_.call("aten::mul", "Tensor", {of(input_), of(graph_.parameter(at::randn({4, 6}, at::kDouble)))});
  }

  ValueId slice(ValueId value, int64_t begin, int64_t end) {
    return graph_.call("aten::slice", "Tensor", {of(value), integer(0), integer(begin), integer(end), integer(1)});
  }
  ValueId zeros() {
    return graph_.call("aten::new_zeros", "", {of(scaled_), integers({4, 6}), none(), none(), none(), none()});
  }
  ValueId add(ValueId left, ValueId right) {
    return graph_.call("aten::add", "Tensor", {of(left), of(right), integer(1)});
  }

  /// Outputs, gradients and buffers of both engines over two steps.
  void expect_equal_to_island(const std::shared_ptr<const graph::Graph>& graph) {
    BoundModel own(program::Program::compile(graph, {Engine::kInstructions, at::kDouble}));
    BoundModel oracle(program::Program::compile(graph, {Engine::kIsland, at::kDouble}));
    EXPECT_THAT(own.program->islands(), IsEmpty());
    for (const int64_t rows : {3, 5}) {
      const at::Tensor x = at::randn({rows, 4, 6}, at::kDouble);
      EXPECT_TRUE(near(step(own, x)[0], step(oracle, x)[0], tolerance(at::kDouble)));
      EXPECT_TRUE(near(own.gradients[0], oracle.gradients[0], tolerance(at::kDouble)));
    }
    for (size_t i = 0; i < own.buffers.size(); ++i) {
      EXPECT_TRUE(near(own.buffers[i], oracle.buffers[i], tolerance(at::kDouble))) << i;
    }
  }

  ProbedGraph graph_;
  ValueId input_ = 0, scaled_ = 0;
};

TEST_F(WritesTest, AMaskWrittenThroughViewsIsMadeByInstructions) {
  const ValueId mask = zeros();
  graph_.call("aten::fill_", "Scalar", {of(slice(mask, 0, 2)), number(2)});
  graph_.call("aten::fill_", "Scalar", {of(slice(mask, 1, 3)), number(-1)});
  expect_equal_to_island(graph_.finish({add(scaled_, mask)}));
}

TEST_F(WritesTest, ARunningMeanWithoutGradientIsUpdatedByInstructionsInTrainingOnly) {
  const ValueId mean = graph_.buffer(at::zeros({4, 6}));
  const ValueId cut = graph_.call("aten::detach", "", {of(scaled_)});
  const ValueId new_mean = graph_.call("aten::mean", "dim", {of(cut), integers({0}), flag(false), none()});
  const ValueId decayed = graph_.call("aten::mul_", "Scalar", {of(mean), number(0.9)});
  graph_.call("aten::add_", "Tensor", {of(decayed), of(new_mean), number(0.1)});
  const auto finished = graph_.finish({add(scaled_, mean)});
  expect_equal_to_island(finished);
  BoundModel model(program::Program::compile(finished, {Engine::kInstructions, at::kDouble}));
  const at::Tensor x = at::randn({3, 4, 6}, at::kDouble);
  step(model, x);
  const at::Tensor before = model.buffers[0].clone();
  EXPECT_GT(before.abs().sum().item<double>(), 0);
  EXPECT_TRUE(near(model.forward({x}, /*training=*/false), x * model.parameters[0] + before, 1e-14));
  EXPECT_TRUE(at::equal(model.buffers[0], before));
}

TEST_F(WritesTest, AWriteThatCarriesAGradientNeedsAnIsland) {
  const ValueId wide = graph_.call("aten::zeros_like", "", {of(scaled_), none(), none(), none(), none(), none()});
  const ValueId part = graph_.call("aten::select", "int", {of(wide), integer(1), integer(2)});
  graph_.call("aten::copy_", "",
              {of(part), of(graph_.call("aten::select", "int", {of(scaled_), integer(1), integer(0)})), flag(false)});
  BoundModel model(program::Program::compile(graph_.finish({wide}), {Engine::kInstructions, at::kDouble}));
  EXPECT_THAT(model.program->islands(), Contains("aten::copy_"));
  const at::Tensor x = at::randn({3, 4, 6}, at::kDouble);
  model.forward({x});
  model.backward(at::ones({3, 4, 6}, at::kDouble));
  at::Tensor expected = at::zeros({4, 6}, at::kDouble);
  expected[0] = x.select(1, 0).sum(0);
  EXPECT_TRUE(near(model.gradients[0], expected, 1e-14));
}

TEST_F(WritesTest, AWriteIntoWhatBackwardReadsNeedsAnIsland) {
  const ValueId factor = graph_.buffer(at::ones({4, 6}));
  const ValueId product = graph_.call("aten::mul", "Tensor", {of(scaled_), of(factor)});
  graph_.call("aten::add_", "Scalar", {of(factor), number(1), number(1)});
  const auto program = program::Program::compile(graph_.finish({product}), {Engine::kInstructions, at::kDouble});
  EXPECT_THAT(program->islands(), Contains("aten::add_.Scalar"));
}

TEST_F(WritesTest, AWriteIsReplacedThoughWhatItGivesIsViewedLater) {
  const ValueId written = graph_.call("aten::relu_", "", {of(scaled_)});
  const ValueId view = graph_.call("aten::permute", "", {of(written), integers({0, 2, 1})});
  graph::Graph graph = *graph_.finish({graph_.call("aten::sin", "", {of(view)})});
  graph::replace_writes(graph, graph::probe_shapes(graph, 2));
  EXPECT_EQ(graph.nodes[1].target, "aten::relu");
  expect_equal_to_island(std::make_shared<const graph::Graph>(graph));
}

TEST_F(WritesTest, AWriteIsKeptWhereAnOlderViewIsReadLater) {
  const ValueId view = graph_.call("aten::permute", "", {of(scaled_), integers({0, 2, 1})});
  graph_.call("aten::relu_", "", {of(scaled_)});
  graph::Graph graph = *graph_.finish({graph_.call("aten::sin", "", {of(view)})});
  graph::replace_writes(graph, graph::probe_shapes(graph, 2));
  EXPECT_EQ(graph.nodes[2].target, "aten::relu_");
}

}  // namespace
}  // namespace tutti::testing
