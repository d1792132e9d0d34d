// Waiting for other ranks: in short looks with pauses between them, and never past a deadline.
#ifndef TUTTI_COMM_DEADLINE_H
#define TUTTI_COMM_DEADLINE_H

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/roster.h"

namespace tutti::comm {

/// Ranks that gave no sign of life, or no sign of progress, within the deadline.
class SilentRank : public std::runtime_error {
 public:
  SilentRank(std::vector<int> ranks, const std::string& message)
      : std::runtime_error(message), ranks_(std::move(ranks)) {}
  const std::vector<int>& ranks() const { return ranks_; }

 private:
  std::vector<int> ranks_;
};

/// How long a collective may wait for other ranks, counted from its call.
struct Deadline {
  std::chrono::milliseconds limit{60'000};
  std::string operation{};             ///< what the ranks are doing, as in "comparing the job file"
  const Roster* roster = nullptr;      ///< names the ranks in messages, if there is one yet
  std::function<void()> idle{};        ///< called between two looks, if set; what it throws ends the wait
  std::chrono::milliseconds grace{0};  ///< waited beyond the limit by ranks that depend on one which waits itself
};

/// A clock that counts only the time in which this process ran: a pause between two looks at it counts as at most
/// `longest_step`. So a process that was stopped and continued does not take the others for silent.
class AwakeClock {
 public:
  explicit AwakeClock(std::chrono::nanoseconds longest_step = std::chrono::seconds(1))
      : longest_step_(longest_step), last_look_(std::chrono::steady_clock::now()) {}

  /// The time this process was awake since the clock's construction.
  std::chrono::nanoseconds look();

 private:
  std::chrono::nanoseconds longest_step_;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::nanoseconds awake_{0};
};

/// Pauses that grow with every call: nothing at first, then the rest of the time slice, then 50 us up to 1 ms.
class Backoff {
 public:
  void pause();

 private:
  int calls_ = 0;
};

/// Looks at `done` until it is true. Throws SilentRank, naming the ranks that `missing` returns, after the deadline.
void wait_until(const Deadline& deadline, const std::function<bool()>& done,
                const std::function<std::vector<int>()>& missing);

/// "60 s" or "0.25 s".
std::string in_seconds(std::chrono::milliseconds time);

}  // namespace tutti::comm

#endif
