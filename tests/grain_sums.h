// Sums over grains by their definition, and teams to try them with.
#ifndef TUTTI_TESTS_GRAIN_SUMS_H
#define TUTTI_TESTS_GRAIN_SUMS_H

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/deadline.h"
#include "comm/tree_sum.h"

namespace tutti::tests {

using comm::GrainRun;
using comm::Subtree;
using comm::Team;

/// One grain's vector: values of all sizes and both signs, so that the order of addition shows in the bits.
template <typename Element>
std::vector<Element> grain_values(int64_t grain, int64_t count) {
  std::vector<Element> values;
  for (int64_t i = 0; i < count; ++i) {
    const double angle = static_cast<double>(grain * 7919 + i * 104729 + 1);
    values.push_back(static_cast<Element>(std::ldexp(std::sin(angle), static_cast<int>((grain + i) % 13))));
  }
  return values;
}

/// The definition: S(level, i) = S(level - 1, 2 i) + S(level - 1, 2 i + 1).
template <typename Element>
std::vector<Element> subtree_sum(const Subtree& subtree, int64_t count) {
  if (subtree.level == 0) return grain_values<Element>(subtree.index, count);
  std::vector<Element> sum = subtree_sum<Element>({subtree.level - 1, 2 * subtree.index}, count);
  const std::vector<Element> right = subtree_sum<Element>({subtree.level - 1, 2 * subtree.index + 1}, count);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<Element>(sum[i] + right[i]);
  return sum;
}

template <typename Element>
std::vector<Element> whole_sum(int64_t grain_count, int64_t count) {
  return subtree_sum<Element>({std::countr_zero(static_cast<uint64_t>(grain_count)), 0}, count);
}

template <typename Element>
void expect_same_bits(const std::vector<Element>& found, const std::vector<Element>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(Element)), 0)
        << "element " << i << ": found " << found[i] << ", expected " << expected[i];
  }
}

/// The teams of `member_count` ranks with runs of every length. `rank_of` gives the rank at a position.
inline std::vector<Team> all_teams(int64_t grain_count, int member_count, const std::function<int(int)>& rank_of) {
  std::vector<Team> teams;
  Team team{grain_count, {}};
  const std::function<void(int64_t)> extend = [&](int64_t begin) {
    const int position = static_cast<int>(team.runs.size());
    if (position == member_count) {
      if (begin == grain_count) teams.push_back(team);
      return;
    }
    for (int64_t end = begin + 1; end <= grain_count; ++end) {
      team.runs.push_back({rank_of(position), begin, end});
      extend(end);
      team.runs.pop_back();
    }
  };
  extend(0);
  return teams;
}

inline std::string text_of(const Team& team) {
  std::string text;
  for (const GrainRun& run : team.runs) {
    text +=
        "rank " + std::to_string(run.rank) + " [" + std::to_string(run.begin) + ", " + std::to_string(run.end) + ") ";
  }
  return text;
}

struct Size {
  int64_t element_count;
  int64_t scalar_count;
};

/// One member's share of a sum: the sums of its subtrees, made by the definition.
template <typename Element>
struct Share {
  std::vector<std::vector<Element>> elements;
  std::vector<std::vector<double>> scalars;
  std::vector<Element> own_sum;

  Share(const Team& team, int rank, const Size& size) : own_sum(static_cast<size_t>(size.element_count)) {
    const GrainRun& run = team.runs[static_cast<size_t>(team.position_of(rank))];
    for (const Subtree& subtree : comm::subtrees_of(run.begin, run.end)) {
      elements.push_back(subtree_sum<Element>(subtree, size.element_count));
      scalars.push_back(subtree_sum<double>(subtree, size.scalar_count));
    }
  }

  std::vector<typename comm::TreeSum<Element>::Part> parts() const {
    std::vector<typename comm::TreeSum<Element>::Part> parts;
    for (size_t i = 0; i < elements.size(); ++i) parts.push_back({elements[i], scalars[i]});
    return parts;
  }
};

/// Waits for a TreeSum or FastSum.
template <typename Sum>
void finish(Sum& sum) {
  comm::wait_until(
      {std::chrono::seconds(20), "summing"}, [&] { return sum.progress(); }, [&] { return sum.waiting_for(); });
}

}  // namespace tutti::tests

#endif
