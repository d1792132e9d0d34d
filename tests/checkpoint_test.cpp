#include "src/train/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

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

  fs::path folder_;
};

TEST_F(CheckpointStoreTest, ReadsBackWhatItWrote) {
  const CheckpointStore store(folder_);
  store.write(checkpoint(7), 1);
  const Checkpoint read = store.read(7);
  EXPECT_EQ(read.description.at("progress").at("step"), 7);
  ASSERT_EQ(read.weights.size(), 1u);
  EXPECT_EQ(read.weights[0].name, "0.weight");
  EXPECT_TRUE(at::equal(read.weights[0].tensor, checkpoint(7).weights[0].tensor));
  EXPECT_TRUE(at::equal(read.state.at(0).tensor, checkpoint(7).state[0].tensor));
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
  EXPECT_THROW(store.read(20), CheckpointError);
  EXPECT_EQ(store.newest_good(), 10);
  EXPECT_TRUE(fs::exists(folder_ / "step_20.bad"));
}

TEST_F(CheckpointStoreTest, GoesBackOverOneThatCannotBeRead) {
  const CheckpointStore store(folder_);
  for (int64_t step : {10, 20}) store.write(checkpoint(step), 2);
  fs::remove(folder_ / "step_20/state.safetensors");
  fs::create_directory(folder_ / "step_20/state.safetensors");  // opens, but every read of it fails
  EXPECT_THROW(store.read(20), CheckpointError);
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
    EXPECT_NO_THROW(store.read(*step)) << point;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

TEST_F(CheckpointStoreTest, LeavesThePreviousOneWhenThereIsNoSpace) {
  const CheckpointStore store(folder_);
  store.write(checkpoint(10), 1);
  Checkpoint huge = checkpoint(20);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = 64;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_ANY_THROW(store.write(huge, 1));
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(store.newest_good(), 10);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{10}));
  EXPECT_FALSE(fs::exists(folder_ / "step_20.writing"));
}

TEST_F(CheckpointStoreTest, ReplacesWeightsAsAWhole) {
  const CheckpointStore store(folder_);
  store.write_weights("final", checkpoint(1).weights);
  store.write_weights("final", checkpoint(2).weights);
  const auto read = read_safetensors(folder_ / "final/weights.safetensors");
  EXPECT_TRUE(at::equal(read.at("0.weight"), checkpoint(2).weights[0].tensor));
}

}  // namespace
}  // namespace tutti::train
