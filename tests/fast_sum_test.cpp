#include "comm/fast_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/back_ends.h"
#include "tests/grain_sums.h"

namespace tutti::comm {
namespace {

using tests::all_teams;
using tests::finish;
using tests::Share;
using tests::Size;

constexpr int kTag = 100;
constexpr Size kSize = {2501, 2};

int by_position(int position) { return position; }

using FastSumTest = tests::OnBothBackEnds;
INSTANTIATE_TEST_SUITE_P(BackEnds, FastSumTest, tests::both_back_ends(), testing::PrintToStringParamName());

TEST_P(FastSumTest, AnyPartitionGivesTheSumWithinRounding) {
  on_ranks([](Communicator& communicator) {
    const std::vector<double> expected = tests::whole_sum<double>(8, kSize.element_count);
    for (const Team& team : all_teams(8, communicator.size(), by_position)) {
      SCOPED_TRACE(tests::text_of(team));
      Share<double> share(team, communicator.rank(), kSize);
      FastSum<double> sum(communicator, team, kTag, share.parts(), {}, share.elements[0]);
      finish(sum);
      EXPECT_THAT(share.elements[0], testing::Pointwise(testing::DoubleNear(1e-9), expected));  // values up to 2^13
      EXPECT_THAT(sum.scalars(),
                  testing::Pointwise(testing::DoubleNear(1e-9), tests::whole_sum<double>(8, kSize.scalar_count)));
    }
  });
}

TEST_P(FastSumTest, EqualSubtreesGiveTheBitsOfTheTree) {
  on_ranks([](Communicator& communicator) {
    const int64_t members = communicator.size();
    if (members == 3) return;  // no complete tree has three equal subtrees
    Team team{8, {}};
    for (int64_t i = 0; i < members; ++i) {
      team.runs.push_back({static_cast<int>(i), i * 8 / members, (i + 1) * 8 / members});
    }
    Share<float> share(team, communicator.rank(), kSize);
    FastSum<float> sum(communicator, team, kTag, share.parts(), {}, share.own_sum);
    finish(sum);
    tests::expect_same_bits(share.own_sum, tests::whole_sum<float>(8, kSize.element_count));
  });
}

TEST_P(FastSumTest, AnyPartitionCostsTheBytesOfARing) {
  on_ranks([](Communicator& communicator) {
    const int64_t members = communicator.size();
    constexpr int64_t kElements = 1200;  // divides by 1 to 4 members
    constexpr int64_t kHeaderBytes = 16;
    const int64_t ring_bytes = 2 * (members - 1) * kElements / members * static_cast<int64_t>(sizeof(float));
    for (const Team& team : all_teams(8, communicator.size(), by_position)) {
      Share<float> share(team, communicator.rank(), {kElements, 0});
      const int64_t before = communicator.sent_bytes();
      FastSum<float> sum(communicator, team, kTag, share.parts(), {}, share.own_sum);
      finish(sum);
      EXPECT_EQ(communicator.sent_bytes() - before, ring_bytes + (members - 1) * kHeaderBytes) << tests::text_of(team);
    }
  });
}

TEST_P(FastSumTest, ErrorOfOneMemberReachesAll) {
  on_ranks([](Communicator& communicator) {
    const Team team = all_teams(8, communicator.size(), by_position).front();
    Share<float> share(team, communicator.rank(), kSize);
    const bool failing = communicator.rank() == communicator.size() - 1;
    FastSum<float> sum(communicator, team, kTag, share.parts(), {false, failing ? "no space left" : ""}, share.own_sum);
    finish(sum);
    EXPECT_EQ(sum.verdict().error, "no space left");
  });
}

TEST(FastSumArgumentsTest, PartsThatDoNotFitAreRefused) {
  const auto communicators = LocalCommunicator::create(1);
  const Team team{4, {{0, 0, 4}}};
  const std::vector<float> long_part(5), short_part(4);
  std::vector<float> sum(5);
  using Sum = FastSum<float>;
  EXPECT_THROW(Sum(*communicators[0], team, kTag, {}, {}, sum), std::invalid_argument);
  EXPECT_THROW(Sum(*communicators[0], team, kTag, {{short_part, {}}}, {}, sum), std::invalid_argument);
  EXPECT_THROW(Sum(*communicators[0], team, kTag, {{long_part, {}}, {short_part, {}}}, {}, sum), std::invalid_argument);
}

}  // namespace
}  // namespace tutti::comm
