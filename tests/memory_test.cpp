// What a run really takes of its lane's region, against what its program predicts; no growth over many runs.
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

/// The movements of attention: dimensions split, reordered and selected, copies into order, a repeated first token.
ValueId moving_net(NodeGraph& graph, ValueId x) {  // [batch, 16, 24]
  for (int block = 0; block < 2; ++block) {
    const ValueId wide = graph.linear(x, 72);
    const ValueId split = graph.call("aten::view", "", {Argument::of(wide), integers({-1, 16, 3, 2, 12})});
    const ValueId turned = graph.call("aten::permute", "", {Argument::of(split), integers({0, 2, 3, 1, 4})});
    const auto part = [&](int64_t index) {
      return graph.call("aten::select", "int", {Argument::of(turned), integer(1), integer(index)});
    };
    ValueId mixed = graph.add_values(graph.relu(part(0)), part(1));
    mixed = graph.call("aten::contiguous", "", {Argument::of(graph.add_values(mixed, part(2))), integer(0)});
    const ValueId back = graph.call("aten::transpose", "int", {Argument::of(mixed), integer(1), integer(2)});
    const ValueId merged = graph.call("aten::reshape", "", {Argument::of(back), integers({-1, 16, 24})});
    x = graph.add_values(x, graph.linear(merged, 24));
  }
  const ValueId front =
      graph.call("aten::slice", "Tensor", {Argument::of(x), integer(1), integer(0), integer(1), integer(1)});
  const ValueId wide =
      graph.call("aten::expand", "", {Argument::of(graph.linear(front, 24)), integers({-1, 16, -1}), flag(false)});
  return graph.linear(graph.flatten(graph.call("aten::cat", "", {Argument::list({wide, x}), integer(1)})), 10);
}

/// Pre-norm transformer blocks with attention whose heads are views.
ValueId transformer(NodeGraph& graph, ValueId x) {  // [batch, 16, 24]
  const auto norm = [&](ValueId value) {
    const ValueId weight = graph.parameter(at::ones({24})), bias = graph.parameter(at::zeros({24}));
    return graph.call(
        "aten::layer_norm", "",
        {Argument::of(value), integers({24}), Argument::of(weight), Argument::of(bias), number(1e-5), flag(false)});
  };
  const auto heads = [&](ValueId value) {
    const ValueId split =
        graph.call("aten::view", "", {Argument::of(graph.linear(value, 24)), integers({-1, 16, 2, 12})});
    return graph.call("aten::transpose", "int", {Argument::of(split), integer(1), integer(2)});
  };
  for (int block = 0; block < 2; ++block) {
    const ValueId read = norm(x);
    const ValueId mixed =
        graph.call("aten::scaled_dot_product_attention", "",
                   {Argument::of(heads(read)), Argument::of(heads(read)), Argument::of(heads(read)), Argument::none(),
                    number(block == 0 ? 0.1 : 0), flag(block == 1), Argument::none(), flag(false)});
    const ValueId back = graph.call("aten::transpose", "int", {Argument::of(mixed), integer(1), integer(2)});
    const ValueId merged = graph.call("aten::reshape", "", {Argument::of(back), integers({-1, 16, 24})});
    x = graph.add_values(x, graph.dropout(graph.linear(merged, 24), 0.1));
    const ValueId wide = graph.call("aten::gelu", "", {Argument::of(graph.linear(norm(x), 96)), text("none")});
    x = graph.add_values(x, graph.linear(wide, 24));
  }
  return graph.linear(graph.call("aten::mean", "dim", {Argument::of(x), integers({1}), flag(false), Argument::none()}),
                      10);
}

/// Channels weighted by what the image holds, bounded, and pooled by a softmax over places.
ValueId gated_cnn(NodeGraph& graph, ValueId x) {
  for (int block = 0; block < 2; ++block) {
    x = graph.call("aten::hardswish", "", {Argument::of(graph.conv2d(x, 16, 3, 1))});
    const ValueId pooled =
        graph.call("aten::mean", "dim", {Argument::of(x), integers({2, 3}), flag(true), Argument::none()});
    const ValueId gate = graph.call("aten::sigmoid", "", {Argument::of(graph.conv2d(pooled, 16, 1, 0))});
    x = graph.call("aten::mul", "Tensor", {Argument::of(x), Argument::of(gate)});
    const ValueId offset = graph.parameter(at::randn({16, 1, 1}, at::kDouble));
    x = graph.call("aten::sub", "Tensor", {Argument::of(x), Argument::of(offset), integer(1)});
    x = graph.call("aten::clamp", "", {Argument::of(x), number(-2), number(2)});
  }
  const ValueId places = graph.call("aten::flatten", "using_ints", {Argument::of(x), integer(2), integer(-1)});
  const ValueId weights = graph.call("aten::softmax", "int", {Argument::of(places), integer(-1), Argument::none()});
  const ValueId weighted = graph.call("aten::mul", "Tensor", {Argument::of(places), Argument::of(weights)});
  return graph.linear(
      graph.call("aten::sum", "dim_IntList", {Argument::of(weighted), integers({-1}), flag(false), Argument::none()}),
      10);
}

/// An LSTM whose first state is computed from the first step.
ValueId recurrent(NodeGraph& graph, ValueId x) {  // [batch, 16, 24]
  const ValueId front = graph.call("aten::select", "int", {Argument::of(x), integer(1), integer(0)});
  const auto state = [&] {
    const ValueId stacked =
        graph.call("aten::unsqueeze", "", {Argument::of(graph.linear(front, 32)), integer(0)});  // [1, batch, 32]
    graph.graph().values[stacked].shape = {1, graph::kBatch, 32};
    return stacked;
  };
  std::vector<ValueId> weights;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{128, 24}, {128, 32}, {128}, {128}}) {
    weights.push_back(graph.parameter(at::randn(shape, at::kDouble) / 5));
  }
  const ValueId output = graph.call("aten::lstm", "input",
                                    {Argument::of(x), Argument::list({state(), state()}), Argument::list(weights),
                                     flag(true), integer(1), number(0), flag(true), flag(false), flag(true)});
  graph.graph().nodes.back().outputs.resize(3, graph::kNoValue);
  return graph.linear(graph.flatten(output), 10);
}

std::vector<Net> nets() {
  return {{"perceptron", 64, {1, 28, 28}, perceptron},     {"small_cnn", 64, {1, 28, 28}, small_cnn},
          {"residual_cnn", 32, {3, 32, 32}, residual_cnn}, {"branching_cnn", 32, {3, 16, 16}, branching_cnn},
          {"moving_net", 32, {16, 24}, moving_net},        {"transformer", 32, {16, 24}, transformer},
          {"gated_cnn", 32, {3, 16, 16}, gated_cnn},       {"recurrent", 32, {16, 24}, recurrent}};
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

/// While it lives, every CPU tensor comes from the system, and the most bytes at once are counted as blocks of a lane
/// region. Tensors may be freed later.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator() { c10::SetCPUAllocator(this, /*priority=*/UINT8_MAX); }
  ~CountingAllocator() override { c10::SetCPUAllocator(before_, /*priority=*/UINT8_MAX); }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    const int64_t block = program::block_bytes(static_cast<int64_t>(bytes));
    auto* begin = static_cast<std::byte*>(std::aligned_alloc(program::kRegionAlignment, static_cast<size_t>(block)));
    if (begin == nullptr) throw std::bad_alloc();
    std::memcpy(begin, &block, sizeof(block));
    live_bytes_ += block;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    void* data = begin + program::kRegionAlignment;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  void begin_again() { peak_bytes_ = live_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  static void release(void* data) {
    if (data == nullptr) return;
    std::byte* begin = static_cast<std::byte*>(data) - program::kRegionAlignment;
    int64_t block = 0;
    std::memcpy(&block, begin, sizeof(block));
    live_bytes_ -= block;
    std::free(begin);
  }

  static inline int64_t live_bytes_ = 0;
  int64_t peak_bytes_ = live_bytes_;
  c10::Allocator* const before_ = c10::GetCPUAllocator();
};

void expect_close(int64_t predicted, int64_t measured, const char* what) {
  const double ratio = static_cast<double>(predicted) / static_cast<double>(measured);
  EXPECT_GE(ratio, 0.999) << what << ": predicted " << predicted << ", measured " << measured;
  EXPECT_LE(ratio, 1.2) << what << ": predicted " << predicted << ", measured " << measured;
}

/// Fails unless one block can have the whole region, which is in use.
void expect_empty(const LaneRegion& region) {
  EXPECT_NO_THROW(at::empty({region.capacity_bytes() - program::block_bytes(0)}, at::kByte));
}

TEST_P(MemoryTest, PredictionIsCloseAboveTheMeasuredPeak) {
  const int64_t rows = GetParam().net.rows;
  CountingAllocator counting;
  train_once();
  expect_close(model_->program->transient_bytes(rows, true), counting.peak_bytes(), "training");
  counting.begin_again();
  model_->forward({input_}, /*training=*/false);
  expect_close(model_->program->transient_bytes(rows, false), counting.peak_bytes(), "evaluation");
}

TEST_P(MemoryTest, NothingIsLeftAndNothingGrows) {
  const LaneRegion::Use use(region_);
  train_once();
  const int64_t extent = region_.extent_bytes();
  const int runs = GetParam().net.name == "perceptron" ? 1000 : 5;
  for (int i = 0; i < runs; ++i) train_once();
  EXPECT_EQ(region_.extent_bytes(), extent);
  expect_empty(region_);
}

TEST_P(MemoryTest, ARunThatFindsNoRoomFailsAndCanBeClearedAway) {
  LaneRegion small(model_->program->transient_bytes(GetParam().net.rows, true) / 2);
  {
    const LaneRegion::Use use(small);
    EXPECT_THROW(train_once(), program::OutOfRegion);
    model_->program->clear(model_->frame);
    expect_empty(small);
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
