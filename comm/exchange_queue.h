// The way from the lanes to the communication thread, and back.
#ifndef TUTTI_COMM_EXCHANGE_QUEUE_H
#define TUTTI_COMM_EXCHANGE_QUEUE_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tutti::comm {

/// Work of the communication thread that takes several looks, such as a tree sum. All members run on that thread.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Starts its sends and receives.
  virtual void start() = 0;

  /// Moves on as far as it can without waiting. True once complete.
  virtual bool progress() = 0;

  /// Called once, right after completion; it may post further operations.
  virtual void finished() = 0;

  /// For messages: "sum of model mlp-3, step 120".
  virtual std::string description() const = 0;

  /// The ranks it still waits for.
  virtual std::vector<int> waiting_for() const = 0;

  /// The memory it allocates while it is in flight.
  virtual int64_t buffer_bytes() const { return 0; }
};

/// Operations that are posted by any thread, and started, progressed and finished by the communication thread. They
/// start in the order of posting.
class ExchangeQueue {
 public:
  /// Any thread. Wakes the communication thread.
  void post(std::unique_ptr<Operation> operation);

  /// Any thread. Ends the communication thread's sleep, for other news than an operation.
  void wake();

  /// Starts what was posted, moves all operations on and finishes the complete ones. True if any of it happened, so
  /// that another look is worth while. What an operation throws passes through; the queue is then of no further use.
  bool progress_all();

  /// Sleeps until there may be something to do: 50 to 200 us while operations are in flight (longer the more often it
  /// was called without progress between), otherwise until post() or wake(), but at most 20 ms.
  void sleep();

  /// The operations that were started and are not complete.
  const std::vector<std::unique_ptr<Operation>>& in_flight() const { return in_flight_; }

  /// The most that all operations in flight together have allocated at one time.
  int64_t peak_buffer_bytes() const { return peak_buffer_bytes_; }

  /// The time up to the last progress_all() in which at least one operation was in flight.
  std::chrono::nanoseconds time_in_flight() const { return time_in_flight_; }

 private:
  bool start_posted();
  void count_time();

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::unique_ptr<Operation>> posted_;  // guarded by mutex_
  bool woken_ = false;                              // guarded by mutex_
  std::vector<std::unique_ptr<Operation>> in_flight_;
  std::chrono::microseconds next_sleep_{0};
  int64_t buffer_bytes_ = 0;  // of the operations in flight
  int64_t peak_buffer_bytes_ = 0;
  std::chrono::steady_clock::time_point counted_to_;  // while operations are in flight
  std::chrono::nanoseconds time_in_flight_{0};
};

}  // namespace tutti::comm

#endif
