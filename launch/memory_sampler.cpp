#include "launch/memory_sampler.h"

#include <fstream>
#include <string>

namespace tutti::launch {

int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    int64_t kilobytes = 0;
    if (key == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
    status.ignore(1 << 12, '\n');
  }
  return 0;
}

MemorySampler::MemorySampler(std::chrono::milliseconds interval) {
  thread_ = std::thread([this, interval] {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      lock.unlock();
      sample();
      lock.lock();
      ending_.wait_for(lock, interval, [this] { return ended_; });
    }
  });
}

MemorySampler::~MemorySampler() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

void MemorySampler::sample() {
  const int64_t now = anonymous_bytes();
  int64_t peak = peak_bytes_;
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace tutti::launch
