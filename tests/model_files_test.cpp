// A model on its way to files and back.
#include "src/train/model_files.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "src/graph/layer_list.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A small model with every kind of state: parameters, Adam's moments, two grains' running statistics.
struct Model {
  explicit Model(int64_t width = 3, at::ScalarType precision = at::kFloat)
      : graph(graph::build_layer_list(
            nlohmann::json::parse(R"([{"linear": )" + std::to_string(width) + R"(}, {"batch_norm1d": {}}])"),
            {"x", {4}})),
        layout(ModelLayout::of(graph, precision, /*moment_count=*/2, /*gradient_count=*/0, /*grain_count=*/2)),
        fused({layout}, {&graph}),
        memory(layout, graph, fused) {
    spec.name = "model";
    spec.grains = 2;
    spec.optimizer.kind = OptimizerSpec::Kind::kAdam;
    spec.source = {{"width", width}};
  }

  /// Everything that a checkpoint holds, by name.
  Checkpoint state() const { return make_checkpoint(spec, graph, memory, progress); }

  /// Fills the state with numbers that are all different.
  void fill() {
    double first = 1;
    for (const auto& list : {state().weights, state().state}) {
      for (const NamedTensor& entry : list) {
        entry.tensor.copy_(at::arange(entry.tensor.numel()).view(entry.tensor.sizes()) + first);
        first += static_cast<double>(entry.tensor.numel());
      }
    }
  }

  graph::Graph graph;
  ModelLayout layout;
  FusedBuffers fused;
  ModelMemory memory;
  ModelSpec spec;
  Progress progress;
};

class ModelFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "model_files-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  StoredCheckpoint stored(Model& model) const {
    model.progress.step = 5;
    EXPECT_TRUE(ModelFiles(folder_, model.spec, nullptr).write_checkpoint(model.state()));
    return CheckpointStore(folder_).open(5);
  }

  fs::path folder_;
};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ModelFilesTest, RestoreTheWholeState) {
  Model written, restored;
  written.fill();
  const StoredCheckpoint checkpoint = stored(written);
  EXPECT_EQ(restore(checkpoint, restored.spec, restored.graph, restored.memory).step, 5);
  const Checkpoint expected = written.state(), found = restored.state();
  for (size_t p = 0; p < written.graph.parameters.size(); ++p) {
    EXPECT_TRUE(at::equal(found.weights[p].tensor, expected.weights[p].tensor)) << found.weights[p].name;
  }
  ASSERT_EQ(found.state.size(), expected.state.size());
  for (size_t i = 0; i < expected.state.size(); ++i) {
    EXPECT_TRUE(at::equal(found.state[i].tensor, expected.state[i].tensor)) << found.state[i].name;
  }
}

TEST_F(ModelFilesTest, RefuseACheckpointThatDoesNotFitAndNameTheTensor) {
  Model written, wider(5), finer(3, at::kDouble), other;
  const StoredCheckpoint checkpoint = stored(written);
  const auto refused = [&](Model& model) {
    return refusal([&] { restore(checkpoint, model.spec, model.graph, model.memory); });
  };
  other.spec.source["width"] = 4;
  EXPECT_THAT(refused(other), HasSubstr("other settings"));
  wider.spec.source = written.spec.source;
  EXPECT_THAT(refused(wider), HasSubstr("`0.weight`: expected shape [5, 4], found [3, 4]"));
  EXPECT_THAT(refused(finer), HasSubstr("`0.weight`: expected type Double, found Float"));
}

TEST_F(ModelFilesTest, LoadWeightsOfAnotherPrecisionIntoEveryGrain) {
  Model written(3, at::kDouble), loaded;
  written.fill();
  write_safetensors(folder_ / "weights.safetensors", written.state().weights);
  load_weights(folder_ / "weights.safetensors", loaded.graph, loaded.memory);
  for (size_t p = 0; p < loaded.graph.parameters.size(); ++p) {
    EXPECT_TRUE(at::equal(loaded.memory.parameter_views[p], written.memory.parameter_views[p].to(at::kFloat)));
  }
  for (const auto& buffers : loaded.memory.grain_buffers) {
    for (size_t b = 0; b < buffers.size(); ++b) {
      EXPECT_TRUE(at::equal(buffers[b], written.memory.averaged_buffers[b].to(buffers[b].scalar_type())))
          << loaded.graph.buffers[b].name;
    }
  }
}

TEST_F(ModelFilesTest, RefuseWeightsWithoutAParameterAndNameIt) {
  Model model;
  const fs::path file = folder_ / "weights.safetensors";
  write_safetensors(file, {{"0.weight", at::full({3, 4}, 1.0)}});
  EXPECT_THAT(refusal([&] { load_weights(file, model.graph, model.memory); }),
              AllOf(HasSubstr(file.string()), HasSubstr("`0.bias`, found none of that name")));
}

TEST_F(ModelFilesTest, RemoveWhatAKilledProcessLeft) {
  const Model model;
  fs::create_directories(folder_ / "step_7.writing");
  fs::create_directories(folder_ / "step_6");
  const ModelFiles files(folder_, model.spec, nullptr);
  EXPECT_FALSE(fs::exists(folder_ / "step_7.writing"));
  EXPECT_TRUE(fs::exists(folder_ / "step_6"));
}

}  // namespace
}  // namespace tutti::train
