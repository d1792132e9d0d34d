// A rank's life among the others: heartbeats, deadlines, signals, and steps that all ranks take together.
#ifndef TUTTI_LAUNCH_RANK_WATCH_H
#define TUTTI_LAUNCH_RANK_WATCH_H

#include <chrono>
#include <functional>
#include <string>

#include "comm/blocked_call_guard.h"
#include "comm/communicator.h"
#include "comm/deadline.h"
#include "comm/roster.h"
#include "comm/watchdog.h"
#include "launch/stop_signals.h"

namespace tutti::launch {

/// Keeps this rank's heartbeats going from the start of a job to its end, whatever else the rank does.
class RankWatch {
 public:
  /// How long a call that blocks the communication thread (starting or ending MPI) may take.
  static constexpr std::chrono::minutes kBlockedLimit{5};

  /// Collective: the ranks get to know each other.
  RankWatch(comm::Communicator& communicator, const StopSignals& signals, comm::BlockedCallGuard& guard);

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
  /// the other ranks. Where it threw on any rank, all throw the same UsageError, which names those ranks. Collective.
  void together(const std::string& doing, const std::function<void()>& action);

  bool stop_requested() const { return watchdog_.stop_requested(); }

  /// Says that this rank's work is done, and returns once every rank's is. Collective, the last act on all ranks.
  void leave_together();

  const comm::Roster& roster() const { return roster_; }

 private:
  std::string run_beside(const std::function<void()>& action);

  comm::Communicator& communicator_;
  const StopSignals& signals_;
  comm::BlockedCallGuard& guard_;
  comm::Roster roster_;
  std::string doing_ = "starting";
  std::function<comm::LaneProgress()> lanes_;
  std::function<void()> chore_;
  comm::Watchdog watchdog_;
};

}  // namespace tutti::launch

#endif
