// Which links are measured, and that every one of them is.
#include "launch/link_benchmark.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <utility>

#include "tests/local_ranks.h"

namespace tutti::launch {
namespace {

std::set<std::pair<int, int>> pairs_of(int rank_count) {
  std::set<std::pair<int, int>> pairs;
  for (const RankPair pair : pairs_to_measure(rank_count)) {
    EXPECT_LT(pair.first, pair.second);
    EXPECT_TRUE(pairs.insert({pair.first, pair.second}).second) << pair.first << " - " << pair.second << " twice";
  }
  return pairs;
}

TEST(LinkBenchmark, MeasuresAllPairsOfFewRanks) {
  for (int ranks = 1; ranks <= 32; ++ranks) EXPECT_EQ(pairs_of(ranks).size(), ranks * (ranks - 1) / 2) << ranks;
}

TEST(LinkBenchmark, MeasuresPairsAtPowersOfTwoOfManyRanks) {
  for (const int ranks : {33, 64, 100}) {
    std::set<std::pair<int, int>> expected;
    for (int first = 0; first < ranks; ++first) {
      for (int second = first + 1; second < ranks; ++second) {
        if (std::has_single_bit(static_cast<unsigned>(second - first))) expected.insert({first, second});
      }
    }
    EXPECT_EQ(pairs_of(ranks), expected) << ranks;
  }
}

TEST(LinkBenchmark, GivesRankZeroEveryLink) {
  tests::on_local_ranks(3, [](comm::Communicator& communicator) {
    const std::vector<LinkSpeed> links = measure_links(communicator, {.operation = "measuring the links"});
    std::set<std::pair<int, int>> measured;
    for (const LinkSpeed& link : links) {
      measured.insert({link.from, link.to});
      EXPECT_GE(link.link.latency_seconds, 0);
      EXPECT_GT(link.link.seconds_per_byte, 0);
    }
    const std::set<std::pair<int, int>> all = {{0, 1}, {0, 2}, {1, 2}};
    EXPECT_EQ(measured, communicator.rank() == 0 ? all : decltype(all)());
  });
}

}  // namespace
}  // namespace tutti::launch
