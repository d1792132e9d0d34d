#include "comm/tree_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/tree_add.h"
#include "tests/back_ends.h"
#include "tests/grain_sums.h"

namespace tutti::comm {
namespace {

constexpr int kTag = 100;

using tests::all_teams;
using tests::expect_same_bits;
using tests::finish;
using tests::Share;
using tests::Size;
using tests::text_of;
using tests::whole_sum;

enum class Target { kOwnMemory, kFirstPart };

template <typename Element>
void expect_tree_sum(Communicator& communicator, const Team& team, const Size& size, Target target) {
  SCOPED_TRACE(testing::Message() << text_of(team) << "on rank " << communicator.rank() << ", " << size.element_count
                                  << " elements, " << size.scalar_count << " scalars");
  Share<Element> share(team, communicator.rank(), size);
  std::vector<Element>& result = target == Target::kFirstPart ? share.elements[0] : share.own_sum;
  TreeSum<Element> sum(communicator, team, kTag, share.parts(), {}, result);
  finish(sum);
  EXPECT_TRUE(sum.waiting_for().empty());
  EXPECT_EQ(sum.verdict().error, "");
  EXPECT_FALSE(sum.verdict().stop_requested);
  expect_same_bits(result, whole_sum<Element>(team.grain_count, size.element_count));
  expect_same_bits(sum.scalars(), whole_sum<double>(team.grain_count, size.scalar_count));
}

TEST(TreeSumOracleTest, OrderOfAdditionShowsInTheBits) {
  const std::vector<float> expected = whole_sum<float>(8, 1000);
  std::vector<float> in_turn = tests::grain_values<float>(0, 1000);
  for (int64_t grain = 1; grain < 8; ++grain) {
    const std::vector<float> values = tests::grain_values<float>(grain, 1000);
    for (size_t i = 0; i < in_turn.size(); ++i) in_turn[i] += values[i];
  }
  EXPECT_NE(in_turn, expected);
}

TEST(TreeSumTest, AnyPartitionGivesTheBitsOfTheTree) {
  constexpr Size kSizes[] = {{0, 3}, {1, 0}, {3, 1}, {131, 2}};
  for (const int64_t grain_count : {1, 2, 4, 8}) {
    for (int member_count = 1; member_count <= std::min<int64_t>(4, grain_count); ++member_count) {
      tests::on_local_ranks(member_count, [&](Communicator& communicator) {
        for (const Team& team : all_teams(grain_count, member_count, [](int position) { return position; })) {
          for (const Size& size : kSizes) {
            expect_tree_sum<float>(communicator, team, size, Target::kOwnMemory);
            expect_tree_sum<double>(communicator, team, size, Target::kFirstPart);
          }
        }
      });
    }
  }
}

TEST(TreeSumTest, MembersMayComeInAnyOrderOfRanks) {
  tests::on_local_ranks(4, [](Communicator& communicator) {
    for (const Team& team : all_teams(8, 3, [](int position) { return 3 - position; })) {
      if (team.position_of(communicator.rank()) < 0) continue;
      expect_tree_sum<float>(communicator, team, {57, 2}, Target::kFirstPart);
    }
  });
}

TEST(TreeSumTest, WaitsForTheMembersThatAreMissing) {
  const Team team{4, {{0, 0, 2}, {1, 2, 3}, {2, 3, 4}}};
  const auto communicators = LocalCommunicator::create(3);
  Share<float> share0(team, 0, {10, 0}), share1(team, 1, {10, 0});
  TreeSum<float> sum0(*communicators[0], team, kTag, share0.parts(), {}, share0.own_sum);
  TreeSum<float> sum1(*communicators[1], team, kTag, share1.parts(), {}, share1.own_sum);
  EXPECT_FALSE(sum0.progress());
  EXPECT_FALSE(sum1.progress());
  EXPECT_FALSE(sum0.progress());
  EXPECT_EQ(sum0.waiting_for(), (std::vector<int>{2}));
}

TEST(TreeSumTest, PartsThatDoNotFitTheTeamAreRefused) {
  const Team team{4, {{0, 0, 3}, {1, 3, 4}}};
  const auto communicators = LocalCommunicator::create(3);
  Share<float> share(team, 0, {10, 1});
  std::vector<float> short_sum(9);
  auto one_part = share.parts();
  one_part.pop_back();
  EXPECT_THROW(TreeSum<float>(*communicators[0], team, kTag, one_part, {}, share.own_sum), std::invalid_argument);
  EXPECT_THROW(TreeSum<float>(*communicators[0], team, kTag, share.parts(), {}, short_sum), std::invalid_argument);
  EXPECT_THROW(TreeSum<float>(*communicators[2], team, kTag, share.parts(), {}, share.own_sum), std::invalid_argument);
}

TEST(TreeSumTest, CountsTheMemoryOfAnOperation) {
  const Team pair{2, {{0, 0, 1}, {1, 1, 2}}};
  // One message out and one in, of 16 bytes, 1 scalar and 50 elements; scratch for two blocks; the scalars' sums.
  EXPECT_EQ(TreeSum<float>::buffer_bytes(pair, 0, 100, 1), 2 * (16 + 8 + 50 * 4) + 2 * 50 * 4 + 8);
  // The member of three grains sends two subtrees' pieces and receives one's.
  const Team uneven{4, {{0, 0, 3}, {1, 3, 4}}};
  EXPECT_EQ(TreeSum<double>::buffer_bytes(uneven, 0, 10, 0), (16 + 2 * 5 * 8) + (16 + 5 * 8) + 4 * 5 * 8);
}

TEST(AddInTreeOrderTest, LeavesThatDoNotTileAreRefused) {
  const std::vector<double> values = {1, 2};
  std::vector<double> sum(2);
  const std::vector<Leaf<double>> leaves = {{{0, 0}, values.data()}, {{0, 2}, values.data()}};
  EXPECT_THROW(add_in_tree_order<double>(4, leaves, sum), std::invalid_argument);
}

using TreeSumOnRanksTest = tests::OnBothBackEnds;
INSTANTIATE_TEST_SUITE_P(BackEnds, TreeSumOnRanksTest, tests::both_back_ends(), testing::PrintToStringParamName());

TEST_P(TreeSumOnRanksTest, AnyPartitionGivesTheBitsOfTheTree) {
  on_ranks([](Communicator& communicator) {
    for (const int64_t grain_count : {1, 2, 4, 8}) {
      for (const Team& team : all_teams(grain_count, communicator.size(), [](int position) { return position; })) {
        expect_tree_sum<float>(communicator, team, {2503, 3}, Target::kFirstPart);
        expect_tree_sum<double>(communicator, team, {0, 1}, Target::kOwnMemory);
      }
    }
  });
}

TEST_P(TreeSumOnRanksTest, OperationsWithDifferentTagsRunAtTheSameTime) {
  on_ranks([](Communicator& communicator) {
    const Team team = all_teams(4, communicator.size(), [](int position) { return position; }).back();
    constexpr int kCount = 6;
    constexpr Size kSize = {20'000, 1};
    std::vector<Share<float>> shares;
    std::vector<TreeSum<float>> sums;
    shares.reserve(kCount);
    for (int i = 0; i < kCount; ++i) shares.emplace_back(team, communicator.rank(), kSize);
    for (int i = 0; i < kCount; ++i) {
      Share<float>& share = shares[static_cast<size_t>(i)];
      sums.emplace_back(communicator, team, kTag + 2 * i, share.parts(), Word(), share.own_sum);
    }
    for (size_t i = sums.size(); i-- > 0;) finish(sums[i]);
    const std::vector<float> expected = whole_sum<float>(4, kSize.element_count);
    for (const Share<float>& share : shares) expect_same_bits(share.own_sum, expected);
  });
}

TEST_P(TreeSumOnRanksTest, ErrorOfOneMemberReachesAllAndTheNextSumIsRight) {
  on_ranks([](Communicator& communicator) {
    const Team team = all_teams(4, communicator.size(), [](int position) { return position; }).front();
    for (int failing = 0; failing < communicator.size(); ++failing) {
      Share<float> share(team, communicator.rank(), {100, 2});
      const std::string error = communicator.rank() == failing ? "label 11 in row " + std::to_string(failing) : "";
      TreeSum<float> sum(communicator, team, kTag, share.parts(), {false, error}, share.own_sum);
      finish(sum);
      EXPECT_EQ(sum.verdict().error, "label 11 in row " + std::to_string(failing));
      expect_tree_sum<float>(communicator, team, {100, 2}, Target::kOwnMemory);
    }
  });
}

TEST_P(TreeSumOnRanksTest, FirstErrorInGrainOrderIsToldShortened) {
  on_ranks([](Communicator& communicator) {
    const int last = communicator.size() - 1;
    const Team team = all_teams(4, communicator.size(), [&](int position) { return last - position; }).front();
    Share<double> share(team, communicator.rank(), {5, 0});
    const std::string error = std::string(999, static_cast<char>('a' + communicator.rank())) + "\u00e9 and more";
    TreeSum<double> sum(communicator, team, kTag, share.parts(), {false, error}, share.own_sum);
    finish(sum);
    EXPECT_EQ(sum.verdict().error, std::string(999, static_cast<char>('a' + last)));
  });
}

TEST_P(TreeSumOnRanksTest, StopRequestOfOneMemberReachesAllBesideTheSum) {
  on_ranks([](Communicator& communicator) {
    const Team team = all_teams(4, communicator.size(), [](int position) { return position; }).front();
    Share<float> share(team, communicator.rank(), {50, 0});
    TreeSum<float> sum(communicator, team, kTag, share.parts(), {communicator.rank() == communicator.size() - 1, ""},
                       share.own_sum);
    finish(sum);
    EXPECT_TRUE(sum.verdict().stop_requested);
    expect_same_bits(share.own_sum, whole_sum<float>(4, 50));
  });
}

TEST_P(TreeSumOnRanksTest, WholeSubtreesCostTheBytesOfARing) {
  on_ranks([](Communicator& communicator) {
    const int64_t members = communicator.size();
    if (members == 3) return;  // no complete tree has three equal subtrees
    constexpr int64_t kElements = 4'000;
    const Team team = [&] {
      Team equal{8, {}};
      for (int64_t i = 0; i < members; ++i)
        equal.runs.push_back({static_cast<int>(i), i * 8 / members, (i + 1) * 8 / members});
      return equal;
    }();
    Share<float> share(team, communicator.rank(), {kElements, 0});
    TreeSum<float> sum(communicator, team, kTag, share.parts(), {}, share.own_sum);
    finish(sum);
    constexpr int64_t kHeaderBytes = 16;
    EXPECT_EQ(communicator.sent_bytes(), 2 * (members - 1) * kElements / members * static_cast<int64_t>(sizeof(float)) +
                                             (members - 1) * kHeaderBytes);
  });
}

}  // namespace
}  // namespace tutti::comm
