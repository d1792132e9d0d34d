// Ends the process when its communication thread hangs in a call and so cannot say it itself.
#ifndef TUTTI_COMM_BLOCKED_CALL_GUARD_H
#define TUTTI_COMM_BLOCKED_CALL_GUARD_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tutti::comm {

/// A thread that expects beat() at least once per `limit` while it lives: around the start and the end of MPI, which
/// block, and in the main loop. Time in which the process was stopped does not count.
class BlockedCallGuard {
 public:
  using OnBlocked = std::function<void(const std::string& message)>;

  /// `on_blocked` is called once, on the guard's thread.
  explicit BlockedCallGuard(std::chrono::milliseconds limit, OnBlocked on_blocked = end_process);
  ~BlockedCallGuard();
  BlockedCallGuard(const BlockedCallGuard&) = delete;
  BlockedCallGuard& operator=(const BlockedCallGuard&) = delete;

  /// The thread is alive, and does `activity` next, as in "starting MPI" (text that lives for ever). Any thread; cheap.
  void beat(const char* activity);

  /// Says the message on standard error and ends the process with exit code 70, without a lock that the blocked thread
  /// may hold; mpirun and srun -K1 then end the other ranks.
  [[noreturn]] static void end_process(const std::string& message);

 private:
  void watch();

  const std::chrono::milliseconds limit_;
  const OnBlocked on_blocked_;
  std::atomic<int64_t> beat_count_ = 0;
  std::atomic<const char*> activity_ = "starting";
  std::mutex mutex_;
  std::condition_variable ended_news_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tutti::comm

#endif
