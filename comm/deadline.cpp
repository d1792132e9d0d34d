#include "comm/deadline.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

namespace tutti::comm {
namespace {

constexpr int kSpins = 20;
constexpr int kYields = 50;
constexpr int kDoublings = 4;
constexpr std::chrono::microseconds kShortestSleep{50};
constexpr std::chrono::microseconds kLongestSleep{1000};

}  // namespace

std::chrono::nanoseconds AwakeClock::look() {
  const auto now = std::chrono::steady_clock::now();
  awake_ += std::min<std::chrono::nanoseconds>(now - last_look_, longest_step_);
  last_look_ = now;
  return awake_;
}

void Backoff::pause() {
  ++calls_;
  if (calls_ <= kSpins) return;
  if (calls_ <= kSpins + kYields) return std::this_thread::yield();
  const int doublings = std::min((calls_ - kSpins - kYields) / 8, kDoublings + 1);
  std::this_thread::sleep_for(std::min(kShortestSleep * (1 << doublings), kLongestSleep));
}

void wait_until(const Deadline& deadline, const std::function<bool()>& done,
                const std::function<std::vector<int>()>& missing) {
  AwakeClock clock;
  Backoff backoff;
  while (!done()) {
    if (clock.look() > deadline.limit + deadline.grace) {
      const std::vector<int> ranks = missing();
      const Roster unknown;
      const std::string names = (deadline.roster ? *deadline.roster : unknown).describe(ranks);
      throw SilentRank(ranks, fmt::format("Expected an answer within {} (run.deadline) while {}; none came from {}. "
                                          "The job is ended; look for that process, then start it again with --resume.",
                                          in_seconds(deadline.limit), deadline.operation, names));
    }
    if (deadline.idle) deadline.idle();
    backoff.pause();
  }
}

std::string in_seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace tutti::comm
