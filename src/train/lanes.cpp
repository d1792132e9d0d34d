#include "src/train/lanes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "src/train/crash_log.h"

namespace tutti::train {

using Clock = std::chrono::steady_clock;

void use_one_intra_op_thread() {
  // Without the first call ATen's lazy initialisation would undo the second.
  at::get_num_threads();
  at::set_num_threads(1);
  TORCH_CHECK(at::get_num_threads() == 1, "lane: expected 1 intra-op thread, found ", at::get_num_threads());
}

Lanes::Lanes(Options options) : options_(std::move(options)) {
  for (int index = 0; index < options_.count; ++index) {
    lanes_.push_back(std::make_unique<Lane>(index, options_.region_bytes));
  }
}

Lanes::~Lanes() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::start(std::vector<ModelRun*> runs) {
  runs_ = std::move(runs);
  for (const auto& lane : lanes_) threads_.emplace_back([this, &lane = *lane] { loop(lane); });
}

void Lanes::notify() {
  {
    const std::lock_guard lock(mutex_);
    ++news_count_;
  }
  news_.notify_all();
}

bool Lanes::done() const {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  return all_ended();
}

bool Lanes::all_ended() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const ModelRun* run) { return run->ended(); });
}

ModelRun* Lanes::choose() const {
  ModelRun* chosen = nullptr;
  double least = 2;
  for (ModelRun* run : runs_) {
    const double fraction = run->done_fraction();
    if (fraction < least && run->has_work()) {
      chosen = run;
      least = fraction;
    }
  }
  return chosen;
}

void Lanes::loop(Lane& lane) try {
  use_one_intra_op_thread();
  const SignalStack signal_stack;
  lane.cpu_clock.follow_this_thread();
  while (true) {
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    const int64_t seen = news_count_;
    lock.unlock();
    if (ModelRun* run = choose()) {
      const auto began = Clock::now();
      const Suspect suspect(run->spec().name);
      lane.visited = &run->spec().name;
      run->work(lane, began + options_.visit);
      lane.visited = nullptr;
      lane.busy_ns += (Clock::now() - began).count();
      notify();
      continue;
    }
    if (all_ended()) options_.on_end();
    lock.lock();
    news_.wait(lock, [&] { return stopping_ || news_count_ != seen; });
  }
} catch (...) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  options_.on_end();
}

}  // namespace tutti::train
