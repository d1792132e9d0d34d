#include "comm/exchange_queue.h"

#include <algorithm>
#include <utility>

namespace tutti::comm {
namespace {

constexpr std::chrono::microseconds kShortestSleep{50};
constexpr std::chrono::microseconds kLongestSleep{200};
constexpr std::chrono::microseconds kIdleSleep{20'000};

}  // namespace

void ExchangeQueue::post(std::unique_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(operation));
  woken_ = true;
  news_.notify_one();
}

void ExchangeQueue::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  news_.notify_one();
}

bool ExchangeQueue::start_posted() {
  std::vector<std::unique_ptr<Operation>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (auto& operation : posted) {
    operation->start();
    buffer_bytes_ += operation->buffer_bytes();
    peak_buffer_bytes_ = std::max(peak_buffer_bytes_, buffer_bytes_);
    in_flight_.push_back(std::move(operation));
  }
  return !posted.empty();
}

void ExchangeQueue::count_time() {
  const auto now = std::chrono::steady_clock::now();
  if (!in_flight_.empty()) time_in_flight_ += now - counted_to_;
  counted_to_ = now;
}

bool ExchangeQueue::progress_all() {
  count_time();
  bool moved = start_posted();
  // A complete operation leaves the list before finished(), so that the list is right whatever that does.
  for (size_t i = 0; i < in_flight_.size();) {
    if (!in_flight_[i]->progress()) {
      ++i;
      continue;
    }
    const std::unique_ptr<Operation> complete = std::move(in_flight_[i]);
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
    buffer_bytes_ -= complete->buffer_bytes();
    complete->finished();
    moved = true;
  }
  if (moved) next_sleep_ = kShortestSleep;
  return moved;
}

void ExchangeQueue::sleep() {
  const std::chrono::microseconds longest = in_flight_.empty() ? kIdleSleep : next_sleep_;
  next_sleep_ = std::clamp(2 * next_sleep_, kShortestSleep, kLongestSleep);
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, longest, [&] { return woken_; });
  woken_ = false;
}

}  // namespace tutti::comm
