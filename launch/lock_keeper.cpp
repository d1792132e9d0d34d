#include "launch/lock_keeper.h"

namespace tutti::launch {

LockKeeper::LockKeeper(const std::filesystem::path& folder, std::chrono::milliseconds period)
    : lock_(folder), period_(period), thread_([this] { keep(); }) {}

LockKeeper::~LockKeeper() {
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  end_news_.notify_one();
  thread_.join();
}

void LockKeeper::check() const {
  const std::lock_guard guard(mutex_);
  if (lost_) std::rethrow_exception(lost_);
}

void LockKeeper::keep() {
  std::unique_lock guard(mutex_);
  while (!end_news_.wait_for(guard, period_, [this] { return ended_; })) {
    guard.unlock();
    std::exception_ptr lost;
    try {
      lock_.touch();
    } catch (...) {
      lost = std::current_exception();
    }
    guard.lock();
    lost_ = lost;
    if (lost_) return;
  }
}

}  // namespace tutti::launch
