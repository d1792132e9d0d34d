#include "launch/output_thread.h"

#include <cstdio>
#include <utility>

namespace tutti::launch {

OutputThread::OutputThread() : thread_([this] { write(); }) {}

OutputThread::~OutputThread() {
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  news_.notify_one();
  thread_.join();
}

void OutputThread::show(std::string_view text) {
  {
    const std::lock_guard guard(mutex_);
    waiting_ += text;
  }
  news_.notify_one();
}

bool OutputThread::is_behind() const {
  const std::lock_guard guard(mutex_);
  return writing_ || !waiting_.empty();
}

void OutputThread::write() {
  std::unique_lock guard(mutex_);
  while (true) {
    news_.wait(guard, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string text = std::exchange(waiting_, {});
    writing_ = true;
    guard.unlock();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    std::clearerr(stdout);  // what is lost is dropped here, and no fault of the program's
    guard.lock();
    writing_ = false;
  }
}

}  // namespace tutti::launch
