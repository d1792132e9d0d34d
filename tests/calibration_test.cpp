// Calibrations: what the cost model takes from the measurements, and the file they travel in.
#include "launch/calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launch/command.h"

namespace tutti::launch {
namespace {

Calibration two_ranks() {
  Calibration calibration;
  calibration.ranks = {{0, "a", 60e9, 20e9, 8e9, 1e-6}, {1, "b", 20e9, 20e9, 4e9, 3e-6}};
  calibration.links = {{0, 1, {2e-6, 3e-10}}, {0, 2, {9e-6, 1e-10}}};
  calibration.sums = {{4096, 1e-4, 2e-4}};
  return calibration;
}

TEST(Calibration, TakesTheMeanLaneAsTheMachine) {
  // Equal work at 60 and 20 takes as long as at 30 throughout.
  EXPECT_DOUBLE_EQ(two_ranks().ranks[0].flops_per_second(), 30e9);
  const partition::Machine machine = two_ranks().machine();
  EXPECT_DOUBLE_EQ(machine.flops_per_second, 25e9);
  EXPECT_DOUBLE_EQ(machine.bytes_per_second, 6e9);
  EXPECT_DOUBLE_EQ(machine.instruction_seconds, 2e-6);
}

TEST(Calibration, GivesSpeedsRelativeToTheMachine) {
  EXPECT_DOUBLE_EQ(two_ranks().speed(0), 1.2);
  EXPECT_DOUBLE_EQ(two_ranks().speed(1), 0.8);
  EXPECT_DOUBLE_EQ(two_ranks().speed(2), 1);
}

TEST(Calibration, TakesTheSlowestLinkInBothRespects) {
  EXPECT_DOUBLE_EQ(two_ranks().link().latency_seconds, 9e-6);
  EXPECT_DOUBLE_EQ(two_ranks().link().seconds_per_byte, 3e-10);
  EXPECT_DOUBLE_EQ(Calibration{}.link().latency_seconds, partition::Link{}.latency_seconds);
}

TEST(Calibration, IsTheSameAfterReadingItsFile) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "calibration_test.json";
  std::ofstream(file) << nlohmann::json(two_ranks());
  EXPECT_EQ(nlohmann::json(read_calibration(file)), nlohmann::json(two_ranks()));
  std::filesystem::remove(file);
}

TEST(Calibration, RefusesAnotherFile) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "calibration_test.txt";
  EXPECT_THROW(read_calibration(file), UsageError);
  std::ofstream(file) << R"({"ranks": []})";
  EXPECT_THROW(read_calibration(file), UsageError);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tutti::launch
