#include "src/train/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "tests/stored_tensors.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

class CheckpointStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "checkpoint-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Checkpoint checkpoint(int64_t step) {
    Checkpoint made;
    made.step = step;
    made.weights = {{"0.weight", at::arange(step, step + 6, at::kFloat).view({2, 3})}};
    made.state = {{"exp_avg/0.weight", at::arange(step, step + 6, at::kFloat).view({2, 3})}};
    made.description = {{"progress", {{"step", step}}}, {"metrics_bytes", 0}, {"timing_bytes", 0}};
    return made;
  }

  std::set<std::string> entries(const fs::path& below = {}) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / below)) names.insert(entry.path().filename());
    return names;
  }

  at::Tensor final_weight() const { return test::StoredTensors(folder_ / "final/weights.safetensors").at("0.weight"); }

  /// Runs `action` while a file can hold 64 bytes.
  template <typename Action>
  static void without_space(const Action& action) {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    rlimit small = limit;
    small.rlim_cur = 64;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    action();
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  fs::path folder_;
};

TEST_F(CheckpointStoreTest, ReadsBackWhatItWrote) {
  const CheckpointStore store(folder_);
  store.write(checkpoint(7), 1);
  const StoredCheckpoint opened = store.open(7);
  EXPECT_EQ(opened.description.at("progress").at("step"), 7);
  const test::StoredTensors weights(opened.weights.path()), state(opened.state.path());
  ASSERT_EQ(weights.tensors.size(), 1u);
  EXPECT_TRUE(at::equal(weights.at("0.weight"), checkpoint(7).weights[0].tensor));
  EXPECT_TRUE(at::equal(state.at("exp_avg/0.weight"), checkpoint(7).state[0].tensor));
}

TEST_F(CheckpointStoreTest, KeepsTheNewest) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20, 30, 40}) store.write(checkpoint(step), 2);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{40, 30}));
}

TEST_F(CheckpointStoreTest, GoesBackOverADamagedOne) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20}) store.write(checkpoint(step), 2);
  std::fstream file(folder_ / "step_20/state.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();
  EXPECT_THROW(store.open(20), CheckpointError);
  EXPECT_EQ(store.newest_good(), 10);
  EXPECT_TRUE(fs::exists(folder_ / "step_20.bad"));
}

TEST_F(CheckpointStoreTest, GoesBackOverOneOfAnotherStepsName) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20}) store.write(checkpoint(step), 2);
  fs::rename(folder_ / "step_10", folder_ / "step_30");
  EXPECT_THROW(store.open(30), CheckpointError);
  EXPECT_EQ(store.newest_good(), 20);
}

TEST_F(CheckpointStoreTest, GoesBackOverOneThatCannotBeRead) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20}) store.write(checkpoint(step), 2);
  fs::remove(folder_ / "step_20/state.safetensors");
  fs::create_directory(folder_ / "step_20/state.safetensors");  // opens, but every read of it fails
  EXPECT_THROW(store.open(20), CheckpointError);
  EXPECT_EQ(store.newest_good(), 10);
}

TEST_F(CheckpointStoreTest, LosesNothingWhenKilledAtAnyPoint) {
  for (const char* point : {"checkpoint.written", "checkpoint.synced", "checkpoint.renamed"}) {
    const CheckpointStore store(folder_);
    store.write(checkpoint(10), 1);
    const auto killed_while_writing = [&] {
      setenv("TUTTI_FAULT", (std::string(point) + ":1").c_str(), 1);
      store.write(checkpoint(20), 1);
      _exit(0);
    };
    EXPECT_EXIT(killed_while_writing(), testing::KilledBySignal(SIGKILL), "") << point;
    const auto step = store.newest_good();
    ASSERT_TRUE(step.has_value()) << point;
    EXPECT_NO_THROW(store.open(*step)) << point;
    store.remove_unfinished();
    for (const std::string& name : entries()) EXPECT_TRUE(name == "step_10" || name == "step_20") << point << name;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

TEST_F(CheckpointStoreTest, LeavesThePreviousOneWhenThereIsNoSpace) {
  const CheckpointStore store(folder_);
  store.write(checkpoint(10), 1);
  const Checkpoint next = checkpoint(20);
  without_space([&] { EXPECT_ANY_THROW(store.write(next, 1)); });
  EXPECT_EQ(store.newest_good(), 10);
  EXPECT_EQ(entries(), (std::set<std::string>{"step_10"}));
}

TEST_F(CheckpointStoreTest, ReplacesWeightsAsAWhole) {
  const CheckpointStore store(folder_);
  store.write_weights("final", checkpoint(1).weights);
  store.write_weights("final", checkpoint(2).weights);
  EXPECT_TRUE(at::equal(final_weight(), checkpoint(2).weights[0].tensor));
}

TEST_F(CheckpointStoreTest, TellsWhetherWeightsAreThoseOfAStep) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20}) store.write(checkpoint(step), 2);
  EXPECT_FALSE(store.holds_weights_of("final", 20)) << "there are none";
  store.write_weights("final", checkpoint(20).weights);
  EXPECT_TRUE(store.holds_weights_of("final", 20));
  EXPECT_FALSE(store.holds_weights_of("final", 10));
  fs::resize_file(folder_ / "final/weights.safetensors", 64);
  EXPECT_FALSE(store.holds_weights_of("final", 20)) << "cut short";
}

TEST_F(CheckpointStoreTest, LeavesThePreviousWeightsAloneWhenThereIsNoSpace) {
  const CheckpointStore store(folder_);
  store.write_weights("final", checkpoint(1).weights);
  const Checkpoint next = checkpoint(2);
  without_space([&] { EXPECT_ANY_THROW(store.write_weights("final", next.weights)); });
  EXPECT_TRUE(at::equal(final_weight(), checkpoint(1).weights[0].tensor));
  EXPECT_EQ(entries("final"), (std::set<std::string>{"weights.safetensors"}));
}

TEST_F(CheckpointStoreTest, LeavesThePreviousWeightsWhenKilled) {
  const CheckpointStore store(folder_);
  store.write_weights("final", checkpoint(1).weights);
  const auto killed_while_writing = [&] {
    setenv("TUTTI_FAULT", "weights.written:1", 1);
    store.write_weights("final", checkpoint(2).weights);
    _exit(0);
  };
  EXPECT_EXIT(killed_while_writing(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(entries("final").size(), 2u) << "expected the kill to leave something";
  store.remove_unfinished();
  EXPECT_EQ(entries("final"), (std::set<std::string>{"weights.safetensors"}));
  EXPECT_TRUE(at::equal(final_weight(), checkpoint(1).weights[0].tensor));
}

}  // namespace
}  // namespace tutti::train
