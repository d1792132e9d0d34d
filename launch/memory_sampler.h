// The anonymous memory of this process, and its highest value over time.
#ifndef TUTTI_LAUNCH_MEMORY_SAMPLER_H
#define TUTTI_LAUNCH_MEMORY_SAMPLER_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace tutti::launch {

/// Anonymous resident memory of this process now (RssAnon of /proc/self/status); 0 where the system does not say.
int64_t anonymous_bytes();

/// Reads anonymous_bytes() in a thread of its own, at a fixed interval, and keeps the highest.
class MemorySampler {
 public:
  explicit MemorySampler(std::chrono::milliseconds interval);
  ~MemorySampler();
  MemorySampler(const MemorySampler&) = delete;
  MemorySampler& operator=(const MemorySampler&) = delete;

  /// Takes one more sample, now. Any thread.
  void sample();
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::atomic<int64_t> peak_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tutti::launch

#endif
