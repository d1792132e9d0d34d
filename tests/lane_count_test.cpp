#include "launch/lane_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

TEST(LaneCount, IsTheMaskDividedByTheRanksThatShareIt) {
  const CpuShare all{"a", {0, 1, 2, 3}, 4};
  EXPECT_EQ(choose_lanes({all}, 0, 0).lane_count, 4);
  EXPECT_EQ(choose_lanes({all, all}, 1, 0).lane_count, 2);
  EXPECT_EQ(choose_lanes({all, all, all, all, all}, 0, 0).lane_count, 1);
}

TEST(LaneCount, FollowsMasksOfTheirOwn) {
  const std::vector<CpuShare> bound = {{"a", {0, 1, 2}, 4}, {"a", {3}, 4}, {"b", {0, 1}, 2}};
  EXPECT_EQ(choose_lanes(bound, 0, 0).lane_count, 3);
  EXPECT_EQ(choose_lanes(bound, 1, 0).lane_count, 1);
  EXPECT_EQ(choose_lanes(bound, 2, 0).lane_count, 2);
  EXPECT_TRUE(choose_lanes(bound, 0, 0).warnings.empty());
}

TEST(LaneCount, WarnsOfIdleCoresAndOfTooManyLanes) {
  const CpuShare half{"a", {0, 1}, 4};
  EXPECT_THAT(choose_lanes({half}, 0, 0).warnings,
              testing::ElementsAre(testing::AllOf(testing::HasSubstr("host a"), testing::HasSubstr("2 of its 4"))));
  const CpuShare all{"b", {0, 1}, 2};
  EXPECT_THAT(choose_lanes({all, all}, 0, 2).warnings,
              testing::ElementsAre(testing::AllOf(testing::HasSubstr("host b"), testing::HasSubstr("2 cores"))));
}

TEST(LaneCount, WarnsOfMoreRanksThanCores) {
  const CpuShare all{"a", {0, 1, 2, 3}, 4};
  const LaneChoice choice = choose_lanes(std::vector<CpuShare>(8, all), 7, 0);
  EXPECT_EQ(choice.lane_count, 1);
  EXPECT_THAT(choice.warnings,
              testing::ElementsAre(testing::AllOf(testing::HasSubstr("host a"), testing::HasSubstr("8 ranks"),
                                                  testing::HasSubstr("8 lanes"), testing::HasSubstr("4 cores"))));
}

TEST(LaneCount, SharesTheCoresOfOverlappingMasks) {
  const std::vector<CpuShare> overlapping = {{"a", {0, 1, 2, 3}, 4}, {"a", {2, 3}, 4}};
  EXPECT_EQ(choose_lanes(overlapping, 0, 0).lane_count, 3);  // 1 + 1 + 1/2 + 1/2
  EXPECT_EQ(choose_lanes(overlapping, 1, 0).lane_count, 1);
  EXPECT_TRUE(choose_lanes(overlapping, 0, 0).warnings.empty());
  // Two ranks on one core each, which is the same: more lanes than the union has cores.
  const std::vector<CpuShare> one = {{"b", {0, 1}, 3}, {"b", {2}, 3}, {"b", {2}, 3}};
  EXPECT_THAT(choose_lanes(one, 0, 0).warnings, testing::ElementsAre(testing::HasSubstr("4 lanes in all share 3")));
}

TEST(LaneCount, WarnsOfExplicitLanesBeyondTheUnionOfTheMasks) {
  const std::vector<CpuShare> overlapping = {{"a", {0, 1, 2}, 4}, {"a", {1, 2, 3}, 4}};
  EXPECT_TRUE(choose_lanes(overlapping, 0, 2).warnings.empty());
  EXPECT_THAT(choose_lanes(overlapping, 0, 3).warnings, testing::ElementsAre(testing::HasSubstr("6 lanes in all")));
}

TEST(LaneCount, IsExactForManySharers) {
  for (int ranks = 1; ranks <= 100; ++ranks) {
    CpuShare share{"a", {}, ranks};
    for (int cpu = 0; cpu < ranks; ++cpu) share.cpus.push_back(cpu);
    EXPECT_EQ(choose_lanes(std::vector<CpuShare>(static_cast<size_t>(ranks), share), 0, 0).lane_count, 1) << ranks;
  }
}

TEST(LaneCount, TravelsAsText) {
  const CpuShare share{"node-7", {2, 5}, 64};
  const CpuShare read = cpu_share_from(to_text(share));
  EXPECT_EQ(read.host, share.host);
  EXPECT_EQ(read.cpus, share.cpus);
  EXPECT_EQ(read.online_count, share.online_count);
}

}  // namespace
}  // namespace tutti::launch
