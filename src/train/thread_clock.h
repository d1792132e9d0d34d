// The CPU time of one thread, as a sign of life that other threads can see.
#ifndef TUTTI_SRC_TRAIN_THREAD_CLOCK_H
#define TUTTI_SRC_TRAIN_THREAD_CLOCK_H

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace tutti::train {

/// Stands still exactly while its thread computes nothing and no system call of it gets on. Any thread may read it.
class ThreadClock {
 public:
  /// From now on the clock of the calling thread; before, it is the process's.
  void follow_this_thread() {
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) clock_ = clock;
  }

  /// CPU time in microseconds: fine enough to see that a thread woke up between two long waits for a device.
  int64_t used_us() const {
    timespec used = {};
    clock_gettime(clock_, &used);
    return int64_t{used.tv_sec} * 1'000'000 + used.tv_nsec / 1000;
  }

 private:
  std::atomic<clockid_t> clock_ = CLOCK_PROCESS_CPUTIME_ID;
};

}  // namespace tutti::train

#endif
