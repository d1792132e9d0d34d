// A team: the ranks that share one model, each owning a contiguous run of its grains.
#ifndef TUTTI_COMM_TEAM_H
#define TUTTI_COMM_TEAM_H

#include <cstdint>
#include <vector>

namespace tutti::comm {

/// The grains [begin, end) that one rank owns.
struct GrainRun {
  int rank = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// A complete subtree of the binary tree over the grains: the grains [index * 2^level, (index + 1) * 2^level).
struct Subtree {
  int level = 0;
  int64_t index = 0;
  bool operator==(const Subtree&) const = default;
};

/// The members of a team in grain order. The runs are non-empty, adjacent, and cover [0, grain_count); grain_count is
/// a power of two.
struct Team {
  int64_t grain_count = 1;
  std::vector<GrainRun> runs;

  /// Position of `rank` in `runs`, or -1.
  int position_of(int rank) const;
};

/// The fewest complete subtrees that cover the grains [begin, end), from left to right. Two runs that meet at a
/// subtree's border need no other exchange than these subtrees' sums.
std::vector<Subtree> subtrees_of(int64_t begin, int64_t end);

}  // namespace tutti::comm

#endif
