// A rank's life among the others: heartbeats, deadlines, signals, and steps that all ranks take together.
#ifndef TUTTI_LAUNCH_RANK_WATCH_H
#define TUTTI_LAUNCH_RANK_WATCH_H

#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "comm/blocked_call_guard.h"
#include "comm/communicator.h"
#include "comm/deadline.h"
#include "comm/roster.h"
#include "comm/watchdog.h"
#include "launch/stop_signals.h"
#include "src/train/thread_clock.h"

namespace tutti::launch {

/// Says what ended the job on this rank, and ends it on all ranks with exit code 70.
[[noreturn]] void end_job(comm::Communicator& communicator, const std::exception& error);

/// Keeps this rank's heartbeats going from the start of a job to its end, whatever else the rank does.
class RankWatch {
 public:
  /// How long a call that blocks the communication thread (starting or ending MPI) may take.
  static constexpr std::chrono::minutes kBlockedLimit{5};

  /// Collective: the ranks get to know each other. `action_limit` is how long an action of together() may get on with
  /// nothing: file systems stall, and come back.
  RankWatch(comm::Communicator& communicator, const StopSignals& signals, comm::BlockedCallGuard& guard,
            std::chrono::milliseconds action_limit = kBlockedLimit);

  /// How long another rank may be silent (run.deadline); before, it is a minute.
  void set_deadline(std::chrono::milliseconds limit) { watchdog_.set_deadline(limit); }

  /// What the lanes do, once there are lanes; and what else is to be done at every poll().
  void watch_lanes(std::function<comm::LaneProgress()> lanes) { lanes_ = std::move(lanes); }
  void also(std::function<void()> chore) { chore_ = std::move(chore); }

  /// Heartbeats and signals. Throws comm::SilentRank.
  void poll();

  /// For a collective: it waits for the other ranks as long as they give signs of life.
  comm::Deadline deadline(const std::string& operation);

  /// Runs `action` in a thread of its own, with one intra-op thread as on a lane, while this thread polls; then meets
  /// the other ranks. Where it threw on any rank, all throw the same UsageError, which names those ranks. A rank whose
  /// action hangs is named after the action limit (or the deadline, if that is longer). Where the job cannot go on
  /// meanwhile, it ends here, by end_job(): the action may still use what the caller owns. Collective.
  void together(const std::string& doing, const std::function<void()>& action);

  bool stop_requested() const { return watchdog_.stop_requested(); }

  /// Says that this rank's work is done, and returns once every rank's is. Collective, the last act on all ranks.
  void leave_together();

  const comm::Roster& roster() const { return roster_; }

 private:
  std::string run_beside(const std::function<void()>& action);
  comm::LaneProgress progress() const;

  comm::Communicator& communicator_;
  const StopSignals& signals_;
  comm::BlockedCallGuard& guard_;
  comm::Roster roster_;
  std::chrono::milliseconds action_limit_;
  std::string doing_ = "starting";
  const train::ThreadClock* action_clock_ = nullptr;  // while an action runs
  std::function<comm::LaneProgress()> lanes_;
  std::function<void()> chore_;
  comm::Watchdog watchdog_;
};

}  // namespace tutti::launch

#endif
