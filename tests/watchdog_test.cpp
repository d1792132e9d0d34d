#include "comm/watchdog.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include "comm/blocked_call_guard.h"
#include "comm/collectives.h"
#include "comm/tags.h"
#include "tests/back_ends.h"

namespace tutti::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kDeadline(400);
constexpr milliseconds kPatience(20'000);

Roster three_hosts() { return Roster({{"n0", 10}, {"n1", 11}, {"n2", 12}}); }

/// Polls until `done`, or for at most `limit`. Returns whether it was done.
bool poll_until(Watchdog& watchdog, milliseconds limit, const std::function<bool()>& done) {
  const auto end = steady_clock::now() + limit;
  while (!done()) {
    if (steady_clock::now() > end) return false;
    watchdog.poll();
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

/// Polls until the watchdog accuses a rank. Returns the message.
std::string accusation(Watchdog& watchdog, int expected_rank) {
  try {
    poll_until(watchdog, kPatience, [] { return false; });
  } catch (const SilentRank& error) {
    EXPECT_THAT(error.ranks(), testing::ElementsAre(expected_rank));
    return error.what();
  }
  return "no accusation";
}

/// Ends a run as a program does: leaves and waits for the others.
void leave(Watchdog& watchdog) {
  watchdog.leave();
  EXPECT_TRUE(poll_until(watchdog, kPatience, [&] { return watchdog.all_left(); })) << "the others did not leave";
}

using WatchdogOnRanksTest = tests::OnBothBackEnds;
INSTANTIATE_TEST_SUITE_P(BackEnds, WatchdogOnRanksTest, tests::both_back_ends(), testing::PrintToStringParamName());

TEST_P(WatchdogOnRanksTest, RanksThatGetOnAreLeftAlone) {
  on_ranks([](Communicator& communicator) {
    int64_t count = 0;
    Watchdog watchdog(communicator, {milliseconds(800), {}, [&] {
                                       return LaneProgress{++count, true, false, "at work"};
                                     }});
    EXPECT_NO_THROW(poll_until(watchdog, milliseconds(1200), [] { return false; }));
    leave(watchdog);
  });
}

TEST_P(WatchdogOnRanksTest, RequestToStopReachesAllRanks) {
  on_ranks([](Communicator& communicator) {
    Watchdog watchdog(communicator, {kPatience, {}, {}});
    EXPECT_FALSE(watchdog.stop_requested());
    if (communicator.rank() == communicator.size() - 1) watchdog.request_stop();
    const auto begin = steady_clock::now();
    EXPECT_TRUE(poll_until(watchdog, kPatience, [&] { return watchdog.stop_requested(); }));
    EXPECT_LT(steady_clock::now() - begin, milliseconds(900)) << "a request must not wait for the next heartbeat";
    leave(watchdog);
  });
}

TEST_P(WatchdogOnRanksTest, NobodyHasLeftBeforeTheLastLeaves) {
  on_ranks([](Communicator& communicator) {
    Watchdog watchdog(communicator, {milliseconds(5000), {}, {}});
    constexpr milliseconds kDelay(200);
    const Deadline patient{kPatience, "testing"};
    barrier(communicator, patient);
    const auto begin = steady_clock::now();
    barrier(communicator, patient);  // all have taken the time before the last starts its delay
    if (communicator.rank() == communicator.size() - 1) poll_until(watchdog, kDelay, [] { return false; });
    leave(watchdog);
    EXPECT_GE(steady_clock::now() - begin, kDelay);
    EXPECT_FALSE(communicator.probe(kWatchdogTag).has_value()) << "a heartbeat is left over";
  });
}

TEST(WatchdogTest, NamesTheRankThatFallsSilentWithItsLastWord) {
  std::latch named(1);
  tests::on_local_ranks(3, [&](Communicator& communicator) {
    int64_t count = 0;
    const std::string word = "step 7 of mlp-" + std::to_string(communicator.rank());
    Watchdog watchdog(communicator, {kDeadline, three_hosts(), [&] {
                                       return LaneProgress{++count, true, false, word};
                                     }});
    if (communicator.rank() == 0) {
      EXPECT_THAT(accusation(watchdog, 2),
                  AllOf(HasSubstr("rank 2 (host n2, process 12) has been silent for 0.4 s (run.deadline)"),
                        HasSubstr("Last word: step 7 of mlp-2."), HasSubstr("--resume")));
      named.count_down();
    } else if (communicator.rank() == 1) {
      poll_until(watchdog, kPatience, [&] { return named.try_wait(); });
    } else {
      poll_until(watchdog, kDeadline / 2, [] { return false; });
      named.wait();  // alive but silent
    }
  });
}

TEST(WatchdogTest, OthersNameRankZero) {
  std::latch named(1);
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    Watchdog watchdog(communicator, {kDeadline, three_hosts(), {}});
    if (communicator.rank() == 0) return named.wait();
    EXPECT_THAT(accusation(watchdog, 0),
                AllOf(HasSubstr("rank 0 (host n0, process 10) has been silent"), HasSubstr("Last word: none.")));
    named.count_down();
  });
}

TEST(WatchdogTest, NamesTheRankWhoseLanesAreStuck) {
  std::latch named(1);
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    // Rank 1 has a longer deadline, so that it does not notice first.
    const milliseconds deadline = communicator.rank() == 0 ? kDeadline : 3 * kDeadline;
    Watchdog watchdog(communicator, {deadline, three_hosts(), [&] {
                                       return LaneProgress{5, communicator.rank() == 1, false, "step 9 of lenet"};
                                     }});
    if (communicator.rank() == 1) {
      poll_until(watchdog, kPatience, [&] { return named.try_wait(); });
      return;
    }
    EXPECT_THAT(accusation(watchdog, 1),
                AllOf(HasSubstr("rank 1 (host n1, process 11) has work but has made no progress for 0.4 s"),
                      HasSubstr("Last word: step 9 of lenet.")));
    named.count_down();
  });
}

TEST(WatchdogTest, NamesItsOwnLanes) {
  tests::on_local_ranks(1, [](Communicator& communicator) {
    Watchdog watchdog(communicator, {kDeadline, three_hosts(), [] {
                                       return LaneProgress{5, true, false, "step 3 of vgg11"};
                                     }});
    EXPECT_THAT(accusation(watchdog, 0),
                AllOf(HasSubstr("rank 0 (host n0, process 10) (this one) has work but has made no progress"),
                      HasSubstr("Last word: step 3 of vgg11.")));
  });
}

/// Rank 0's accusation, or none, when both ranks say at each heartbeat what `lanes(rank, heartbeat)` returns.
std::string accusation_of_all(const std::function<LaneProgress(int, int64_t)>& lanes) {
  std::string message;
  std::latch judged(1);
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    int64_t beats = 0;
    Watchdog watchdog(communicator, {kDeadline, three_hosts(), [&] { return lanes(communicator.rank(), ++beats); }});
    if (communicator.rank() == 1) {
      EXPECT_TRUE(poll_until(watchdog, kPatience, [&] { return judged.try_wait(); }));
      return;
    }
    try {
      poll_until(watchdog, 4 * kDeadline, [] { return false; });
    } catch (const SilentRank& error) {
      message = error.what();
    }
    judged.count_down();
  });
  return message;
}

TEST(WatchdogTest, NamesTheRanksThatWaitWhenAllStandStill) {
  EXPECT_THAT(accusation_of_all([](int rank, int64_t) {
                return LaneProgress{5, false, rank == 1, rank == 1 ? "waiting for rank 0 in the sum of m" : ""};
              }),
              AllOf(HasSubstr("stood still for 0.4 s (run.deadline)"),
                    HasSubstr("rank 1 (host n1, process 11): waiting for rank 0 in the sum of m"),
                    Not(HasSubstr("host n0")), HasSubstr("--resume")));
}

TEST(WatchdogTest, RankMayWaitWhileAnotherWorks) {
  EXPECT_EQ(accusation_of_all([](int rank, int64_t beats) {
              return rank == 0 ? LaneProgress{5, false, true, "waiting"} : LaneProgress{beats, true, false, "at work"};
            }),
            "");
}

TEST(WatchdogTest, RankMayWaitWhileAnotherGetsOnBetweenHeartbeats) {
  EXPECT_EQ(accusation_of_all([](int rank, int64_t beats) {
              return rank == 0 ? LaneProgress{5, false, true, "waiting"} : LaneProgress{beats, false, true, "waiting"};
            }),
            "");
}

TEST(WatchdogTest, WorkOfMorePatienceIsAccusedByItsOwnLimit) {
  std::latch named(1);
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    const milliseconds patience = 3 * kDeadline;
    // Rank 1 has a longer deadline, so that it does not notice first.
    Watchdog watchdog(communicator, {communicator.rank() == 0 ? kDeadline : 4 * kDeadline, three_hosts(), [&] {
                                       return LaneProgress{5, communicator.rank() == 1, false, "opening", patience};
                                     }});
    if (communicator.rank() == 1) {
      poll_until(watchdog, kPatience, [&] { return named.try_wait(); });
      return;
    }
    const auto begin = steady_clock::now();
    EXPECT_THAT(accusation(watchdog, 1),
                AllOf(HasSubstr("has work but has made no progress for 1.2 s. Last word: opening."),
                      Not(HasSubstr("(run.deadline)"))));
    EXPECT_GE(steady_clock::now() - begin, patience);
    named.count_down();
  });
}

TEST(WatchdogTest, LanesWithoutWorkAreNotStuck) {
  tests::on_local_ranks(2, [](Communicator& communicator) {
    Watchdog watchdog(communicator, {kDeadline, {}, [] { return LaneProgress{5, false, false, "waiting"}; }});
    EXPECT_NO_THROW(poll_until(watchdog, 3 * kDeadline, [] { return false; }));
    leave(watchdog);
  });
}

TEST(WatchdogTest, RankThatSleptItselfAccusesNobody) {
  std::atomic<bool> slept = false;
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    // Rank 0 is the one that sleeps; rank 1's own deadline is too long to mind.
    Watchdog watchdog(communicator, {communicator.rank() == 0 ? kDeadline : kPatience, {}, {}});
    if (communicator.rank() == 0) {
      poll_until(watchdog, kDeadline / 4, [] { return false; });
      std::this_thread::sleep_for(4 * kDeadline);
      slept = true;
      EXPECT_NO_THROW(leave(watchdog));
    } else {
      std::this_thread::sleep_for(3 * kDeadline);  // says nothing while rank 0 sleeps
      poll_until(watchdog, kPatience, [&] { return slept.load(); });
      leave(watchdog);
    }
  });
}

TEST(BlockedCallGuardTest, NamesTheCallThatHangs) {
  std::promise<std::string> blocked;
  BlockedCallGuard guard(milliseconds(200), [&](const std::string& message) { blocked.set_value(message); });
  guard.beat("starting MPI");
  auto message = blocked.get_future();
  ASSERT_EQ(message.wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT(message.get(),
              AllOf(HasSubstr("blocked for more than 0.2 s, its limit, while starting MPI."),
                    Not(HasSubstr("run.deadline")), HasSubstr(std::to_string(this_process().process_id))));
}

TEST(BlockedCallGuardTest, LeavesAThreadAloneThatBeats) {
  std::atomic<bool> blocked = false;
  {
    BlockedCallGuard guard(milliseconds(1000), [&](const std::string&) { blocked = true; });
    const auto end = steady_clock::now() + milliseconds(1500);
    while (steady_clock::now() < end) {
      guard.beat("turning");
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  EXPECT_FALSE(blocked);
}

TEST(BlockedCallGuardTest, EndsTheProcessWithItsOwnExitCode) {
  EXPECT_EXIT(BlockedCallGuard::end_process("blocked"), testing::ExitedWithCode(70), "tutti: blocked");
}

/// Prints until the pipe that standard output is, and which nobody reads, is full, and holds stdout's lock ever since.
void hang_while_printing() {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  dup2(ends[1], STDOUT_FILENO);
  BlockedCallGuard guard(milliseconds(200));
  guard.beat("printing");
  while (true) std::puts("a line of the table");
}

TEST(BlockedCallGuardTest, EndsAProcessThatHangsWhileItPrints) {
  EXPECT_EXIT(hang_while_printing(), testing::ExitedWithCode(70), "while printing");
}

TEST(BlockedCallGuardTest, EndsAProcessWhoseErrorsNobodyReads) {
  const auto end_unheard = [] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], "full", 4) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    BlockedCallGuard::end_process("blocked");
  };
  EXPECT_EXIT(end_unheard(), testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace tutti::comm
