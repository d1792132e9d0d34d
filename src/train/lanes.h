// The lanes of one rank: threads that visit models in turn.
#ifndef TUTTI_SRC_TRAIN_LANES_H
#define TUTTI_SRC_TRAIN_LANES_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/train/lane.h"
#include "src/train/model_run.h"

namespace tutti::train {

/// Makes ATen compute on the calling thread alone: more than one changes the bits of products and norms.
void use_one_intra_op_thread();

/// Threads that each stay with one model for a visit, then take the one that has come the least far. ATen's intra-op
/// threads are 1 on every lane.
class Lanes {
 public:
  struct Options {
    int count = 1;
    int64_t region_bytes = 0;  ///< per lane: what the largest program needs
    std::chrono::nanoseconds visit = std::chrono::milliseconds(50);
    std::function<void()> on_end;  ///< called by a lane when all models have ended, or it failed
  };

  explicit Lanes(Options options);
  /// Waits for the lanes' present visits, then ends them.
  ~Lanes();

  /// Starts the threads. `runs` must outlive them.
  void start(std::vector<ModelRun*> runs);

  /// Any thread: there may be work that was not there before.
  void notify();

  /// True when every model has ended. Rethrows what a lane could not handle.
  bool done() const;

  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }

 private:
  void loop(Lane& lane);
  ModelRun* choose() const;
  bool all_ended() const;

  Options options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<ModelRun*> runs_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  int64_t news_count_ = 0;      // guarded by mutex_
  bool stopping_ = false;       // guarded by mutex_
  std::exception_ptr failure_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tutti::train

#endif
