// Where lanes get a model's work.
#include "src/train/grain_desk.h"

#include <algorithm>
#include <utility>

namespace tutti::train {

int64_t GrainDesk::slot_count(const comm::GrainRun& run, int64_t lane_count) {
  return std::min(run.end - run.begin, lane_count);
}

GrainDesk::GrainDesk(const comm::GrainRun& run, int64_t lane_count, std::vector<at::Tensor> pool)
    : run_(run),
      slot_count_(slot_count(run, lane_count)),
      gradient_sum_(run.begin, run.end, std::move(pool)),
      evaluation_sum_(run.begin, run.end, {}) {
  for (int slot = static_cast<int>(slot_count_); slot-- > 0;) free_slots_.push_back(slot);
}

void GrainDesk::begin(Stage stage) {
  if (gives_grains(stage)) sum_of(stage).reset();
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  stage_taken_ = false;
  if (gives_grains(stage)) next_grain_ = run_.begin;
}

bool GrainDesk::has_work() const {
  const std::lock_guard lock(mutex_);
  if (visitor_count_ >= slot_count_ || stage_ == Stage::kWaiting || stage_ == Stage::kEnded) return false;
  if (gives_grains(stage_)) return next_grain_ < run_.end && !free_slots_.empty() && sum_of(stage_).has_room();
  return !stage_taken_;
}

bool GrainDesk::enter() {
  const std::lock_guard lock(mutex_);
  if (visitor_count_ >= slot_count_) return false;
  ++visitor_count_;
  return true;
}

void GrainDesk::leave() {
  const std::lock_guard lock(mutex_);
  --visitor_count_;
}

std::optional<Claim> GrainDesk::claim() {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::kWaiting || stage_ == Stage::kEnded) return std::nullopt;
  if (gives_grains(stage_)) return claim_grain();
  if (std::exchange(stage_taken_, true)) return std::nullopt;
  return Claim{.stage = stage_};
}

/// Requires mutex_.
std::optional<Claim> GrainDesk::claim_grain() {
  if (next_grain_ >= run_.end || free_slots_.empty()) return std::nullopt;
  const auto buffer = sum_of(stage_).acquire();
  if (!buffer) return std::nullopt;
  const Claim claim{stage_, next_grain_++, *buffer, free_slots_.back()};
  free_slots_.pop_back();
  return claim;
}

bool GrainDesk::finish(const Claim& claim, std::vector<double> scalars) {
  const bool last = sum_of(claim.stage).finish(claim.grain, claim.buffer, std::move(scalars));
  const std::lock_guard lock(mutex_);
  free_slots_.push_back(claim.slot);
  return last;
}

bool GrainDesk::ended() const {
  const std::lock_guard lock(mutex_);
  return stage_ == Stage::kEnded;
}

}  // namespace tutti::train
