#include "comm/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tutti::comm {
namespace {

/// The fewest aligned power-of-two ranges that tile [begin, end), by trying all.
int64_t fewest_subtrees(int64_t begin, int64_t end) {
  if (begin == end) return 0;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int64_t size = 1; begin + size <= end && begin % size == 0 && size <= end; size *= 2) {
    fewest = std::min(fewest, 1 + fewest_subtrees(begin + size, end));
  }
  return fewest;
}

TEST(SubtreesOf, TileTheRunFromLeftToRightWithTheFewest) {
  for (int64_t begin = 0; begin <= 32; ++begin) {
    for (int64_t end = begin; end <= 32; ++end) {
      SCOPED_TRACE(testing::Message() << "run [" << begin << ", " << end << ")");
      int64_t next = begin;
      const std::vector<Subtree> subtrees = subtrees_of(begin, end);
      for (const Subtree& subtree : subtrees) {
        EXPECT_EQ(subtree.index << subtree.level, next);
        next = (subtree.index + 1) << subtree.level;
      }
      EXPECT_EQ(next, end);
      EXPECT_EQ(static_cast<int64_t>(subtrees.size()), fewest_subtrees(begin, end));
    }
  }
}

TEST(SubtreesOf, WholeTreeIsOneSubtree) {
  for (int level = 0; level <= 40; ++level) {
    EXPECT_EQ(subtrees_of(0, int64_t{1} << level), (std::vector<Subtree>{{level, 0}})) << "level " << level;
  }
}

TEST(Team, PositionFollowsGrainOrderNotRankOrder) {
  const Team team{4, {{7, 0, 1}, {2, 1, 3}, {5, 3, 4}}};
  EXPECT_EQ(team.position_of(7), 0);
  EXPECT_EQ(team.position_of(2), 1);
  EXPECT_EQ(team.position_of(5), 2);
  EXPECT_EQ(team.position_of(0), -1);
}

}  // namespace
}  // namespace tutti::comm
