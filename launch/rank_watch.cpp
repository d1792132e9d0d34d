#include "launch/rank_watch.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "comm/collectives.h"
#include "comm/last_words.h"
#include "launch/command.h"
#include "src/train/fault_text.h"
#include "src/train/lanes.h"

namespace tutti::launch {

namespace {

/// The distinct texts with the ranks they come from; "" where all are empty.
std::string merged_faults(const std::vector<std::string>& texts, const comm::Roster& roster) {
  std::map<std::string, std::vector<int>> ranks;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].empty()) ranks[texts[rank]].push_back(static_cast<int>(rank));
  }
  std::string merged;
  for (const auto& [text, from] : ranks) {
    if (!merged.empty()) merged += '\n';
    merged += from.size() == texts.size() ? text : roster.describe(from) + ": " + text;
  }
  return merged;
}

comm::Roster meet(comm::Communicator& communicator) {
  comm::Deadline deadline;
  deadline.operation = "meeting at the start";
  return comm::collect_roster(communicator, comm::this_process(), deadline);
}

}  // namespace

void end_job(comm::Communicator& communicator, const std::exception& error) {
  comm::say_last_words(fmt::format("rank {}: {}", communicator.rank(), train::fault_text(error)));
  communicator.abort(kInternal);
  std::_Exit(kInternal);  // never reached, which GCC does not see of a virtual function
}

RankWatch::RankWatch(comm::Communicator& communicator, const StopSignals& signals, comm::BlockedCallGuard& guard,
                     std::chrono::milliseconds action_limit)
    : communicator_(communicator),
      signals_(signals),
      guard_(guard),
      roster_(meet(communicator)),
      action_limit_(action_limit),
      watchdog_(communicator, {std::chrono::minutes(1), roster_, [this] { return progress(); }}) {}

comm::LaneProgress RankWatch::progress() const {
  if (action_clock_ != nullptr) return {action_clock_->used_us(), true, false, doing_, action_limit_};
  return lanes_ ? lanes_() : comm::LaneProgress{0, false, false, doing_};
}

void RankWatch::poll() {
  guard_.beat("watching the other ranks");
  if (signals_.received() != 0 && !watchdog_.stop_requested()) watchdog_.request_stop();
  watchdog_.poll();
  if (chore_) chore_();
}

comm::Deadline RankWatch::deadline(const std::string& operation) {
  comm::Deadline deadline;
  deadline.limit = std::chrono::hours(24 * 365);
  deadline.operation = operation;
  deadline.roster = &roster_;
  deadline.idle = [this] { poll(); };
  return deadline;
}

std::string RankWatch::run_beside(const std::function<void()>& action) {
  std::string fault;
  std::atomic<bool> done = false;
  train::ThreadClock clock;
  std::thread worker([&] {
    clock.follow_this_thread();
    try {
      train::use_one_intra_op_thread();
      action();
    } catch (const std::exception& error) {
      fault = train::fault_text(error);
    }
    done = true;
  });
  action_clock_ = &clock;
  try {
    comm::Backoff backoff;
    while (!done) {
      poll();
      backoff.pause();
    }
  } catch (const std::exception& error) {
    end_job(communicator_, error);
  }
  action_clock_ = nullptr;
  worker.join();
  return fault;
}

void RankWatch::together(const std::string& doing, const std::function<void()>& action) {
  doing_ = doing;
  const std::string fault = run_beside(action);
  const std::string merged = merged_faults(comm::all_gather(communicator_, fault, deadline(doing)), roster_);
  if (!merged.empty()) throw UsageError(merged);
}

void RankWatch::leave_together() {
  watchdog_.leave();
  comm::Backoff backoff;
  while (!watchdog_.all_left()) {
    poll();
    backoff.pause();
  }
  poll();
}

}  // namespace tutti::launch
