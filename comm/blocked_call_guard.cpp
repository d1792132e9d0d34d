#include "comm/blocked_call_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "comm/deadline.h"
#include "comm/last_words.h"
#include "comm/roster.h"

namespace tutti::comm {
namespace {

constexpr std::chrono::milliseconds kLongestPeriod{1000};

}  // namespace

BlockedCallGuard::BlockedCallGuard(std::chrono::milliseconds limit, OnBlocked on_blocked)
    : limit_(limit), on_blocked_(std::move(on_blocked)), thread_([this] { watch(); }) {}

BlockedCallGuard::~BlockedCallGuard() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_news_.notify_one();
  thread_.join();
}

void BlockedCallGuard::beat(const char* activity) {
  activity_.store(activity, std::memory_order_relaxed);
  beat_count_.fetch_add(1, std::memory_order_relaxed);
}

void BlockedCallGuard::end_process(const std::string& message) {
  say_last_words(message);
  std::_Exit(kInternalErrorExit);
}

void BlockedCallGuard::watch() {
  const auto period = std::min(limit_ / 8, kLongestPeriod);
  AwakeClock clock(2 * period);
  int64_t seen_count = 0;
  std::chrono::nanoseconds seen_at{0};
  std::unique_lock lock(mutex_);
  while (!ended_news_.wait_for(lock, period, [this] { return ended_; })) {
    const int64_t count = beat_count_.load(std::memory_order_relaxed);
    const auto now = clock.look();
    if (count != seen_count) seen_at = now;
    seen_count = count;
    if (now - seen_at <= limit_) continue;
    lock.unlock();
    const Process process = this_process();
    on_blocked_(fmt::format(
        "The communication thread of process {} on host {} has been blocked for more than {}, its limit, while {}. The "
        "job is ended. Look for what hangs there (the network, a file system, whoever reads the output), then start it "
        "again with --resume.",
        process.process_id, process.host, in_seconds(limit_), activity_.load(std::memory_order_relaxed)));
    return;
  }
}

}  // namespace tutti::comm
