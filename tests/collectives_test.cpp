#include "comm/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/agreement.h"
#include "comm/byte_strings.h"
#include "comm/roster.h"
#include "tests/back_ends.h"

namespace tutti::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

const Deadline kPatient{milliseconds(20'000), "testing"};
const Deadline kShort{milliseconds(200), "testing"};

/// A value of its own size and with all kinds of bytes for each rank; rank 1's is empty.
std::string value_of(int rank) {
  std::string value;
  if (rank == 1) return value;
  for (int i = 0; i < 300 + 1000 * rank; ++i) value += static_cast<char>(i * (rank + 1));
  return value;
}

using CollectivesTest = tests::OnBothBackEnds;
INSTANTIATE_TEST_SUITE_P(BackEnds, CollectivesTest, tests::both_back_ends(), testing::PrintToStringParamName());

TEST_P(CollectivesTest, BroadcastGivesTheRootsBytesToAll) {
  on_ranks([](Communicator& communicator) {
    for (int root = 0; root < communicator.size(); ++root) {
      EXPECT_EQ(broadcast(communicator, value_of(communicator.rank()), kPatient, root), value_of(root));
    }
  });
}

TEST_P(CollectivesTest, GatherCollectsByRankOnTheRoot) {
  on_ranks([](Communicator& communicator) {
    for (int root = 0; root < communicator.size(); ++root) {
      const auto gathered = gather(communicator, value_of(communicator.rank()), kPatient, root);
      ASSERT_EQ(gathered.size(), communicator.rank() == root ? static_cast<size_t>(communicator.size()) : 0U);
      for (size_t rank = 0; rank < gathered.size(); ++rank) EXPECT_EQ(gathered[rank], value_of(static_cast<int>(rank)));
    }
  });
}

TEST_P(CollectivesTest, AllGatherCollectsByRankOnAll) {
  on_ranks([](Communicator& communicator) {
    const auto gathered = all_gather(communicator, value_of(communicator.rank()), kPatient);
    ASSERT_EQ(gathered.size(), static_cast<size_t>(communicator.size()));
    for (size_t rank = 0; rank < gathered.size(); ++rank) EXPECT_EQ(gathered[rank], value_of(static_cast<int>(rank)));
  });
}

TEST_P(CollectivesTest, BarrierHoldsAllUntilTheLastComes) {
  on_ranks([](Communicator& communicator) {
    constexpr milliseconds kDelay(100);
    barrier(communicator, kPatient);
    const auto begin = std::chrono::steady_clock::now();
    barrier(communicator, kPatient);  // all have taken the time before the last may start its delay
    if (communicator.rank() == communicator.size() - 1) std::this_thread::sleep_for(kDelay);
    barrier(communicator, kPatient);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kDelay);
  });
}

TEST_P(CollectivesTest, IdleRunsWhileARankWaits) {
  on_ranks([](Communicator& communicator) {
    int64_t calls = 0;
    Deadline deadline = kPatient;
    deadline.idle = [&] { ++calls; };
    if (communicator.rank() > 0) std::this_thread::sleep_for(milliseconds(50));
    barrier(communicator, deadline);
    EXPECT_TRUE(calls > 0 || communicator.rank() > 0 || communicator.size() == 1);
  });
}

TEST_P(CollectivesTest, RosterKnowsEveryProcess) {
  on_ranks([](Communicator& communicator) {
    const Process own = {"host" + std::to_string(communicator.rank()), 100 + communicator.rank()};
    const Roster roster = collect_roster(communicator, own, kPatient);
    ASSERT_EQ(roster.processes().size(), static_cast<size_t>(communicator.size()));
    EXPECT_EQ(roster.describe(0), "rank 0 (host host0, process 100)");
    EXPECT_EQ(roster.describe(communicator.rank()), "rank " + std::to_string(communicator.rank()) + " (host " +
                                                        own.host + ", process " + std::to_string(own.process_id) + ")");
    EXPECT_EQ(roster.describe(99), "rank 99");
  });
}

TEST_P(CollectivesTest, RanksThatAgreePass) {
  on_ranks([](Communicator& communicator) {
    const std::vector<LabelledValue> values = {{"version", "0.1"}, {"job hash", std::string("\0\xff", 2)}};
    EXPECT_NO_THROW(agree(communicator, values, kPatient));
  });
}

/// The message every rank gets when the last one's values are `odd`.
std::string disagreement(Communicator& communicator, const std::vector<LabelledValue>& usual,
                         const std::vector<LabelledValue>& odd) {
  try {
    agree(communicator, communicator.rank() == communicator.size() - 1 ? odd : usual, kPatient);
  } catch (const Disagreement& error) {
    return error.what();
  }
  return "agreed";
}

TEST_P(CollectivesTest, DisagreementNamesTheOddRankOnAllRanks) {
  on_ranks([](Communicator& communicator) {
    if (communicator.size() == 1) return;
    const std::string odd_rank = "rank " + std::to_string(communicator.size() - 1);
    EXPECT_THAT(
        disagreement(communicator, {{"version", "0.1"}, {"job hash", "aa"}}, {{"version", "0.1"}, {"job hash", "bb"}}),
        AllOf(HasSubstr(odd_rank + ", job hash: expected \"aa\", found \"bb\""), testing::Not(HasSubstr("version:"))));
    EXPECT_THAT(disagreement(communicator, {{"a", "1"}, {"b", "2"}}, {{"a", "1"}}),
                HasSubstr(odd_rank + ": expected \"b\", found nothing more"));
    EXPECT_THAT(disagreement(communicator, {{"a", "1"}}, {{"z", "1"}}),
                HasSubstr(odd_rank + ": expected \"a\", found \"z\""));
  });
}

TEST_P(CollectivesTest, DisagreementShowsWhereLongValuesPart) {
  on_ranks([](Communicator& communicator) {
    if (communicator.size() == 1) return;
    std::string usual(10'000, '.'), odd(10'000, '.');
    usual.replace(5000, 5, "width");
    odd.replace(5000, 5, "depth");
    const std::string message = disagreement(communicator, {{"models", usual}}, {{"models", odd}});
    EXPECT_THAT(message, AllOf(HasSubstr("width"), HasSubstr("depth"), HasSubstr("10000 bytes")));
    EXPECT_LT(message.size(), 1000U);
  });
}

TEST(CollectivesDeadlineTest, NamesTheRankThatDoesNotTakePart) {
  const Roster roster({{"n0", 10}, {"n1", 11}, {"n2", 12}});
  for (const int absent : {0, 1, 2}) {
    tests::on_local_ranks(3, [&](Communicator& communicator) {
      if (communicator.rank() == absent) return;
      if (absent > 0 && communicator.rank() > 0) return;  // the root is the one that knows
      Deadline deadline = kShort;
      deadline.operation = "comparing the job file";
      deadline.roster = &roster;
      try {
        all_gather(communicator, "x", deadline);
        ADD_FAILURE() << "rank " << communicator.rank() << " did not notice that rank " << absent << " is absent";
      } catch (const SilentRank& error) {
        EXPECT_THAT(error.ranks(), testing::Contains(absent));
        EXPECT_THAT(error.what(), AllOf(HasSubstr(roster.describe(absent)), HasSubstr("while comparing the job file"),
                                        HasSubstr("0.2 s"), HasSubstr("--resume")));
      }
    });
  }
}

TEST(CollectivesDeadlineTest, RankBehindTheRootIsMorePatientThanTheRoot) {
  // Rank 2 is absent. Rank 0 must be first to say so: rank 1 only knows that rank 0 did not answer.
  std::chrono::steady_clock::time_point noticed[2];
  tests::on_local_ranks(3, [&](Communicator& communicator) {
    if (communicator.rank() == 2) return;
    EXPECT_THROW(barrier(communicator, kShort), SilentRank);
    noticed[communicator.rank()] = std::chrono::steady_clock::now();
  });
  EXPECT_LT(noticed[0], noticed[1]);
}

TEST(AwakeClockTest, CountsALongPauseAsOneStep) {
  constexpr milliseconds kStep(100);
  AwakeClock clock(kStep);
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_EQ(clock.look(), kStep);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GE(clock.look(), kStep + milliseconds(20));
}

TEST(ByteStringsTest, UnpackGivesBackWhatWasPacked) {
  const std::vector<std::string> strings = {"", "a", std::string("\0\1\xff", 3), "", std::string(5000, 'x')};
  EXPECT_EQ(unpack(pack(strings)), strings);
  EXPECT_TRUE(unpack("").empty());
}

TEST(ByteStringsTest, DamagedBytesAreRefused) {
  const std::string packed = pack(std::vector<std::string>{"abc", "def"});
  EXPECT_THROW(unpack(std::string_view(packed).substr(0, packed.size() - 1)), std::invalid_argument);
  EXPECT_THROW(unpack("short"), std::invalid_argument);
  EXPECT_THROW(unpack(std::string(16, '\xff')), std::invalid_argument);
}

}  // namespace
}  // namespace tutti::comm
