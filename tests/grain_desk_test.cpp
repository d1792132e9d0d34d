#include "src/train/grain_desk.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tutti::train {
namespace {

/// A desk for the grains [begin, end) of rank 0, with the gradients that it asks for.
GrainDesk desk_for(int64_t begin, int64_t end, int64_t lane_count) {
  std::vector<at::Tensor> pool;
  const int buffers = GrainSum::buffer_count(begin, end, lane_count);
  for (int i = 0; i < buffers; ++i) pool.push_back(at::zeros({4}, at::kFloat));
  return {{0, begin, end}, lane_count, std::move(pool)};
}

/// Claims and hands in all grains of the stage, on one lane; returns them in the order of the claims.
std::vector<int64_t> work_off(GrainDesk& desk) {
  std::vector<int64_t> grains;
  bool last = false;
  while (const auto claim = desk.claim()) {
    EXPECT_FALSE(last) << "grain " << claim->grain << " after the last one";
    grains.push_back(claim->grain);
    last = desk.finish(*claim, {static_cast<double>(claim->grain)});
  }
  EXPECT_TRUE(last) << "grains: " << grains.size();
  return grains;
}

TEST(GrainDesk, HasNoWorkBeforeAStageBegins) {
  GrainDesk desk = desk_for(0, 4, 2);
  EXPECT_FALSE(desk.has_work());
  EXPECT_FALSE(desk.claim().has_value());
  EXPECT_FALSE(desk.ended());
}

TEST(GrainDesk, GivesEachGrainOfATeamsMemberOnceInAscendingOrder) {
  for (const Stage stage : {Stage::kTrain, Stage::kEvaluate}) {
    GrainDesk desk = desk_for(3, 8, 2);
    for (int step = 0; step < 3; ++step) {
      desk.begin(stage);
      EXPECT_EQ(work_off(desk), (std::vector<int64_t>{3, 4, 5, 6, 7})) << "step " << step;
      EXPECT_FALSE(desk.has_work()) << "step " << step;
      std::vector<double> sums;
      for (const GrainSum::Part& part : desk.parts(stage)) sums.push_back(part.scalars.at(0));
      EXPECT_EQ(sums, (std::vector<double>{3, 4 + 5 + 6 + 7})) << "of grain 3 and of the subtree of grains 4 to 7";
    }
  }
}

TEST(GrainDesk, GivesLanesAtWorkDifferentGrainsBuffersAndSlots) {
  GrainDesk desk = desk_for(0, 4, 2);
  desk.begin(Stage::kTrain);
  const auto first = desk.claim();
  const auto second = desk.claim();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->grain, second->grain);
  EXPECT_NE(first->buffer, second->buffer);
  EXPECT_NE(first->slot, second->slot);
  EXPECT_FALSE(desk.has_work()) << "two lanes, both at work";
  EXPECT_FALSE(desk.claim().has_value());

  desk.finish(*second, {0});
  EXPECT_TRUE(desk.has_work());
  const auto third = desk.claim();
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->grain, 2);
  EXPECT_EQ(third->slot, second->slot);
}

TEST(GrainDesk, GivesAPieceOfWorkToOneLaneOnly) {
  for (const Stage stage : {Stage::kUpdate, Stage::kShared, Stage::kConclude}) {
    GrainDesk desk = desk_for(0, 4, 4);
    desk.begin(stage);
    EXPECT_TRUE(desk.has_work());
    const auto claim = desk.claim();
    ASSERT_TRUE(claim.has_value());
    EXPECT_EQ(claim->stage, stage);
    EXPECT_FALSE(desk.has_work());
    EXPECT_FALSE(desk.claim().has_value());
    desk.begin(stage);
    EXPECT_TRUE(desk.claim().has_value()) << "a stage that begins again is free again";
  }
}

TEST(GrainDesk, LetsInAsManyLanesAsGrainsMayBeAtWork) {
  GrainDesk desk = desk_for(0, 2, 8);
  desk.begin(Stage::kTrain);
  EXPECT_EQ(desk.slot_count(), 2);
  EXPECT_TRUE(desk.enter());
  EXPECT_TRUE(desk.has_work());
  EXPECT_TRUE(desk.enter());
  EXPECT_FALSE(desk.has_work()) << "a third lane would be turned away";
  EXPECT_FALSE(desk.enter());
  desk.leave();
  EXPECT_TRUE(desk.enter());
}

TEST(GrainDesk, GivesNothingWhileItWaitsAndAfterTheEnd) {
  GrainDesk desk = desk_for(0, 2, 1);
  for (const Stage stage : {Stage::kWaiting, Stage::kEnded}) {
    desk.begin(Stage::kTrain);
    desk.begin(stage);
    EXPECT_FALSE(desk.has_work());
    EXPECT_FALSE(desk.claim().has_value());
    EXPECT_EQ(desk.ended(), stage == Stage::kEnded);
  }
}

TEST(GrainDesk, IsDrivenByManyLanesAtOnce) {
  constexpr int kLanes = 4, kSteps = 200;
  constexpr int64_t kGrains = 8;
  GrainDesk desk = desk_for(0, kGrains, kLanes);
  std::vector<double> sums;  // touched by whoever holds the stage
  int64_t updates = 0;
  desk.begin(Stage::kTrain);
  const auto visit = [&] {
    while (const auto claim = desk.claim()) {
      if (claim->stage == Stage::kUpdate) {
        desk.begin(++updates == kSteps ? Stage::kEnded : Stage::kTrain);
      } else if (desk.finish(*claim, {static_cast<double>(claim->grain + updates)})) {
        sums.push_back(desk.parts(Stage::kTrain).front().scalars.front());
        desk.begin(Stage::kUpdate);
      }
    }
  };
  const auto loop = [&] {
    while (!desk.ended()) {
      if (!desk.has_work() || !desk.enter()) {
        std::this_thread::yield();
        continue;
      }
      visit();
      desk.leave();
    }
  };
  std::vector<std::thread> lanes;
  for (int i = 0; i < kLanes; ++i) lanes.emplace_back(loop);
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(updates, kSteps);
  ASSERT_EQ(sums.size(), static_cast<size_t>(kSteps));
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(sums[static_cast<size_t>(step)], kGrains * (kGrains - 1) / 2 + kGrains * step) << "step " << step;
  }
}

}  // namespace
}  // namespace tutti::train
