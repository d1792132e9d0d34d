// What a run really takes of its lane's region, against what its program predicts; no growth over many runs.
#include <ATen/Parallel.h>

#include "node_graph.h"
#include "src/program/lane_allocator.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;
using program::LaneRegion;

constexpr int64_t kCapacity = int64_t{1} << 30;

struct Net {
  std::string name;
  int64_t rows;
  std::vector<int64_t> row_shape;
  std::function<ValueId(NodeGraph&, ValueId)> layers;
};

ValueId perceptron(NodeGraph& graph, ValueId x) {
  x = graph.relu(graph.linear(graph.flatten(x), 128));
  return graph.linear(graph.relu(graph.linear(graph.dropout(x, 0.25), 64)), 10);
}

ValueId small_cnn(NodeGraph& graph, ValueId x) {
  x = graph.max_pool2d(graph.relu(graph.conv2d(x, 8, 5, 2)), 2);
  x = graph.max_pool2d(graph.relu(graph.conv2d(x, 16, 5, 2)), 2);
  return graph.linear(graph.dropout(graph.relu(graph.linear(graph.flatten(x), 64)), 0.25), 10);
}

ValueId residual_cnn(NodeGraph& graph, ValueId x) {
  x = graph.relu(graph.batch_norm(graph.conv2d(x, 16, 3, 1)));
  for (int block = 0; block < 3; ++block) {
    const ValueId inner = graph.relu(graph.batch_norm(graph.conv2d(x, 16, 3, 1)));
    x = graph.relu(graph.add_values(graph.batch_norm(graph.conv2d(inner, 16, 3, 1)), x));
  }
  const ValueId pooled = graph.call("aten::adaptive_avg_pool2d", "", {Argument::of(x), integers({1, 1})});
  return graph.linear(graph.flatten(pooled), 10);
}

ValueId branching_cnn(NodeGraph& graph, ValueId x) {
  for (int block = 0; block < 2; ++block) {
    const ValueId left = graph.call("aten::gelu", "", {Argument::of(graph.conv2d(x, 8, 1, 0)), text("none")});
    const ValueId right = graph.call("aten::silu", "", {Argument::of(graph.conv2d(x, 8, 3, 1))});
    x = graph.call("aten::cat", "", {Argument::list({left, right}), integer(1)});
  }
  return graph.linear(graph.flatten(graph.max_pool2d(x, 4)), 10);
}

std::vector<Net> nets() {
  return {{"perceptron", 64, {1, 28, 28}, perceptron},
          {"small_cnn", 64, {1, 28, 28}, small_cnn},
          {"residual_cnn", 32, {3, 32, 32}, residual_cnn},
          {"branching_cnn", 32, {3, 16, 16}, branching_cnn}};
}

struct MemoryRun {
  Net net;
  at::ScalarType precision;
};
void PrintTo(const MemoryRun& run, std::ostream* out) { *out << run.net.name << " in " << run.precision; }

class MemoryTest : public ::testing::TestWithParam<MemoryRun> {
 protected:
  void SetUp() override {
    program::install_lane_allocator();
    at::get_num_threads();
    at::set_num_threads(1);
    at::manual_seed(17);
    const auto& [net, precision] = GetParam();
    NodeGraph graph;
    graph.output(net.layers(graph, graph.input(net.row_shape)));
    model_.emplace(compile(graph, Engine::kInstructions, precision));
    std::vector<int64_t> shape{net.rows};
    shape.insert(shape.end(), net.row_shape.begin(), net.row_shape.end());
    input_ = at::randn(shape, at::kDouble).to(precision);
  }

  void train_once() {
    model_->forward({input_});
    model_->backward(at::ones({input_.size(0), 10}, input_.options()));
  }

  std::optional<BoundModel> model_;
  at::Tensor input_;
  LaneRegion region_{kCapacity};
};

void expect_close(int64_t predicted, int64_t measured, const char* what) {
  const double ratio = static_cast<double>(predicted) / static_cast<double>(measured);
  EXPECT_GE(ratio, 0.999) << what << ": predicted " << predicted << ", measured " << measured;
  EXPECT_LE(ratio, 1.2) << what << ": predicted " << predicted << ", measured " << measured;
}

TEST_P(MemoryTest, PredictionIsCloseAboveTheMeasuredPeak) {
  const int64_t rows = GetParam().net.rows;
  {
    const LaneRegion::Use use(region_);
    train_once();
    expect_close(model_->program->transient_bytes(rows, true), use.peak_bytes(), "training");
  }
  const LaneRegion::Use use(region_);
  model_->forward({input_}, /*training=*/false);
  expect_close(model_->program->transient_bytes(rows, false), use.peak_bytes(), "evaluation");
}

TEST_P(MemoryTest, NothingIsLeftAndNothingGrows) {
  const LaneRegion::Use use(region_);
  train_once();
  EXPECT_EQ(region_.live_bytes(), 0);
  const int64_t peak = use.peak_bytes(), extent = region_.extent_bytes();
  const int runs = GetParam().net.name == "perceptron" ? 1000 : 5;
  for (int i = 0; i < runs; ++i) train_once();
  EXPECT_EQ(region_.live_bytes(), 0);
  EXPECT_EQ(use.peak_bytes(), peak);
  EXPECT_EQ(region_.extent_bytes(), extent);
}

TEST_P(MemoryTest, ARunThatFindsNoRoomFailsAndCanBeClearedAway) {
  LaneRegion small(model_->program->transient_bytes(GetParam().net.rows, true) / 2);
  {
    const LaneRegion::Use use(small);
    EXPECT_THROW(train_once(), program::OutOfRegion);
    model_->program->clear(model_->frame);
    EXPECT_EQ(small.live_bytes(), 0);
  }
  const LaneRegion::Use use(region_);
  EXPECT_NO_THROW(train_once());
}

std::vector<MemoryRun> all_runs() {
  std::vector<MemoryRun> runs;
  for (const Net& net : nets()) {
    for (const at::ScalarType precision : {at::kFloat, at::kDouble}) runs.push_back({net, precision});
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Nets, MemoryTest, ::testing::ValuesIn(all_runs()), [](const auto& info) {
  return info.param.net.name + (info.param.precision == at::kDouble ? "_float64" : "_float32");
});

}  // namespace
}  // namespace tutti::testing
