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

TEST(LaneCount, TravelsAsText) {
  const CpuShare share{"node-7", {2, 5}, 64};
  const CpuShare read = cpu_share_from(to_text(share));
  EXPECT_EQ(read.host, share.host);
  EXPECT_EQ(read.cpus, share.cpus);
  EXPECT_EQ(read.online_count, share.online_count);
}

}  // namespace
}  // namespace tutti::launch
