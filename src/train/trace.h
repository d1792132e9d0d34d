// A record of what each lane and each exchange did when, in Chrome's trace format.
#ifndef TUTTI_SRC_TRAIN_TRACE_H
#define TUTTI_SRC_TRAIN_TRACE_H

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tutti::train {

/// Collects events of one rank from any thread. Load the result in chrome://tracing or ui.perfetto.dev.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  /// The row of events that belong to no lane: exchanges.
  static constexpr int kExchange = 1000;

  Trace(int rank, bool enabled);

  bool enabled() const { return enabled_; }

  /// Records that `what` ("visit", "exchange", "evaluate", "checkpoint") of `model` took from `begin` to `end`;
  /// steps [first_step, last_step].
  void record(const char* what, const std::string& model, int lane, Clock::time_point begin, Clock::time_point end,
              int64_t first_step, int64_t last_step);

  /// The events as JSON objects, separated by ",\n": one rank's part of a trace file.
  std::string events() const;

 private:
  struct Event {
    const char* what;
    std::string model;
    int lane;
    int64_t begin_us, end_us, first_step, last_step;
  };
  int rank_;
  bool enabled_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace tutti::train

#endif
