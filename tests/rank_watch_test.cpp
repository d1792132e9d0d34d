// Steps that all ranks take together: a rank that hangs in one is named, and the job ends.
#include "launch/rank_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <new>
#include <thread>

#include "launch/command.h"
#include "tests/local_ranks.h"

namespace tutti::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline(400);
constexpr milliseconds kActionLimit(1500);

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Runs `body` on two ranks.
void on_two_watches(const std::function<void(RankWatch&, int rank)>& body) {
  const StopSignals signals;
  comm::BlockedCallGuard guard(RankWatch::kBlockedLimit);
  tests::on_local_ranks(2, [&](comm::Communicator& communicator) {
    RankWatch watch(communicator, signals, guard, kActionLimit);
    watch.set_deadline(kDeadline);
    body(watch, communicator.rank());
  });
}

/// CPU time passes, as in an action that computes.
void compute_for(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(RankWatchTest, ActionThatHangsIsNamedWithItsRank) {
  EXPECT_EXIT(on_two_watches([](RankWatch& watch, int rank) {
                watch.together("opening the shards", [&] {
                  if (rank == 1) hang();
                });
              }),
              testing::ExitedWithCode(kInternal),
              "rank 1 .*has work but has made no progress for 1.5 s. Last word: opening the shards");
}

TEST(RankWatchTest, ActionThatStallsForLessThanItsLimitIsLeftAlone) {
  int done = 0;
  on_two_watches([&](RankWatch& watch, int rank) {
    watch.together("opening the shards", [&] {
      if (rank == 0) std::this_thread::sleep_for(2 * kDeadline);
    });
    if (rank == 0) ++done;
    watch.leave_together();
  });
  EXPECT_EQ(done, 1);
}

TEST(RankWatchTest, ActionThatComputesMayTakeLong) {
  EXPECT_NO_THROW(on_two_watches([&](RankWatch& watch, int rank) {
    watch.together("reading the shards", [&] {
      if (rank == 1) compute_for(2 * kActionLimit);
    });
    watch.leave_together();
  }));
}

TEST(RankWatchTest, FaultOnOneRankIsToldToAll) {
  on_two_watches([](RankWatch& watch, int rank) {
    try {
      watch.together("reading the job file", [&] {
        if (rank == 1) throw std::runtime_error("no such file");
      });
      ADD_FAILURE() << "no error on rank " << rank;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("rank 1 "), testing::HasSubstr("no such file")));
    }
    watch.leave_together();
  });
}

TEST(RankWatchTest, LackOfMemoryIsToldWithWhatToDo) {
  on_two_watches([](RankWatch& watch, int rank) {
    try {
      watch.together("building the models", [] { throw std::bad_alloc(); });
      ADD_FAILURE() << "no error on rank " << rank;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("out of memory"), testing::HasSubstr("ulimit -v"),
                                               testing::HasSubstr("smaller batch")));
    }
    watch.leave_together();
  });
}

/// While its action works on a local, the caller hears that rank 1 is silent. Unwound, the local would be gone.
void lose_the_other_rank() {
  on_two_watches([](RankWatch& watch, int rank) {
    if (rank == 1) hang();
    struct Local {
      ~Local() { std::_Exit(1); }
    } local;
    watch.together("placing the models", [&local] {
      (void)local;
      compute_for(std::chrono::hours(1));
    });
  });
}

TEST(RankWatchTest, JobEndsBeforeWhatAnActionUsesIsGone) {
  EXPECT_EXIT(lose_the_other_rank(), testing::ExitedWithCode(kInternal), "rank 0: rank 1 .*has been silent for 0.4 s");
}

}  // namespace
}  // namespace tutti::launch
