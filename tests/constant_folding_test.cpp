// Graphs with folded constants against the same graphs as they were, both run by LibTorch.
#include "src/graph/constant_folding.h"

#include <gmock/gmock.h>

#include "node_graph.h"
#include "src/graph/shape_probe.h"

namespace tutti::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kRows = 2;

std::vector<std::string> targets(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Node& node : graph.nodes) names.push_back(node.target);
  return names;
}

at::Tensor output_of(const graph::Graph& graph, const at::Tensor& input) {
  BoundModel model(program::Program::compile(std::make_shared<const graph::Graph>(graph),
                                             {program::CompileOptions::Engine::kIsland, at::kDouble}));
  return model.forward({input});
}

/// Folds a graph, whose output must stay what it was, and returns the targets of the nodes left.
std::vector<std::string> folded(NodeGraph& built) {
  graph::Graph folded = built.graph();
  graph::fold_constants(folded, graph::probe_shapes(folded, kRows));
  const at::Tensor input = at::linspace(-1, 1, kRows * 4, at::kDouble).view({kRows, 4});
  EXPECT_TRUE(at::equal(output_of(folded, input), output_of(built.graph(), input)));
  return targets(folded);
}

/// A tensor of four numbers made from nothing.
ValueId made(NodeGraph& graph, double value) {
  return graph.call("aten::full", "",
                    {integers({4}), number(value), Argument::fixed(static_cast<int64_t>(at::kFloat)), Argument::none(),
                     Argument::none(), Argument::none()});
}

ValueId slice(NodeGraph& graph, ValueId value, int64_t begin, int64_t end) {
  return graph.call("aten::slice", "Tensor",
                    {Argument::of(value), integer(0), integer(begin), integer(end), integer(1)});
}

ValueId fill(NodeGraph& graph, ValueId value, double content) {
  return graph.call("aten::fill_", "Scalar", {Argument::of(value), number(content)});
}

TEST(ConstantFolding, RunsNodesThatDependOnNothingWritesThroughViewsIncluded) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId mask = made(graph, 0);
  fill(graph, slice(graph, mask, 1, 3), -2);
  graph.output(graph.add_values(input, mask));
  EXPECT_THAT(folded(graph), ElementsAre("aten::add"));
}

TEST(ConstantFolding, RunsNodesThatReadOnlyTheTypeAndFixedShapeOfATensor) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId fresh = graph.call("aten::new_full", "",
                                   {Argument::of(input), integers({1, 4}), number(2), Argument::none(),
                                    Argument::none(), Argument::none(), Argument::none()});
  graph.graph().values[fresh].shape = {1, 4};  // not the batch
  const ValueId parameter = graph.parameter(at::randn({4}, at::kDouble));
  const ValueId like = graph.call("aten::ones_like", "",
                                  {Argument::of(parameter), Argument::none(), Argument::none(), Argument::none(),
                                   Argument::none(), Argument::none()});
  graph.output(graph.add_values(graph.add_values(input, fresh), like));
  EXPECT_THAT(folded(graph), ElementsAre("aten::add", "aten::add"));
}

TEST(ConstantFolding, LeavesWhatAnotherNodeWritesInto) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId mask = made(graph, 0);
  const ValueId row = graph.call("aten::select", "int", {Argument::of(input), integer(0), integer(0)});
  graph.call("aten::add_", "Tensor", {Argument::of(slice(graph, mask, 0, 4)), Argument::of(row), integer(1)});
  graph.output(graph.add_values(input, mask));
  EXPECT_THAT(folded(graph), ::testing::Contains("aten::full"));
}

TEST(ConstantFolding, LeavesWhatIsReadBeforeItIsWrittenAgain) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId step = made(graph, 1);
  const ValueId sum = graph.add_values(input, step);
  fill(graph, step, 5);
  graph.output(graph.add_values(sum, step));
  EXPECT_THAT(folded(graph), ElementsAre("aten::full", "aten::add", "aten::fill_", "aten::add"));
}

TEST(ConstantFolding, LeavesRealNumbersThatFloat32DoesNotHold) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  graph.output(graph.add_values(input, made(graph, 0.1)));
  EXPECT_THAT(folded(graph), ElementsAre("aten::full", "aten::add"));
}

TEST(ConstantFolding, LeavesRandomNumbers) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId noise = graph.call(
      "aten::rand", "", {integers({4}), Argument::none(), Argument::none(), Argument::none(), Argument::none()});
  graph.output(graph.add_values(input, noise));
  graph::Graph folded = graph.graph();
  graph::fold_constants(folded, graph::probe_shapes(folded, kRows));
  EXPECT_THAT(targets(folded), ElementsAre("aten::rand", "aten::add"));
}

TEST(ConstantFolding, LeavesGivenConstantsAsTheyAreWhereTheyAreWritten) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const at::Tensor given = at::ones({4}, at::kLong);
  fill(graph, graph.constant(given), 3);
  graph.output(graph.relu(input));
  graph::Graph folded = graph.graph();
  graph.graph().constants.front().tensor.fill_(1);  // building the graph ran the node
  graph::fold_constants(folded, graph::probe_shapes(folded, kRows));
  EXPECT_THAT(targets(folded), ElementsAre("aten::fill_", "aten::relu"));
  EXPECT_TRUE(at::equal(folded.constants.front().tensor, at::ones({4}, at::kLong)));
}

}  // namespace
}  // namespace tutti::testing
