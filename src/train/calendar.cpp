#include "src/train/calendar.h"

#include <algorithm>
#include <limits>

namespace tutti::train {
namespace {

/// ceil(count / part), for any part >= 1.
int64_t parts_of(int64_t count, int64_t part) { return count / part + (count % part != 0); }

/// The greatest number where the product would not fit.
int64_t saturated_product(int64_t a, int64_t b) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return b != 0 && a > kMost / b ? kMost : a * b;
}

}  // namespace

Calendar::Calendar(const ModelSpec& spec, int64_t batches_per_epoch)
    : spec_(spec),
      batches_per_epoch_(batches_per_epoch),
      steps_per_epoch_(parts_of(batches_per_epoch, spec.accumulate)),
      total_steps_(saturated_product(spec.epochs, steps_per_epoch_)) {
  if (spec.max_steps) total_steps_ = std::min(total_steps_, *spec.max_steps);
}

StepBatches Calendar::batches_after(int64_t step) const {
  const int64_t first = step % steps_per_epoch_ * spec_.accumulate;
  return {step / steps_per_epoch_, first, first + std::min(spec_.accumulate, batches_per_epoch_ - first)};
}

bool Calendar::evaluation_due(int64_t step) const {
  return is_done(step) || (is_epoch_end(step) && epochs_done(step) % spec_.evaluate_every == 0);
}

bool Calendar::checkpoint_due(int64_t step) const {
  const CheckpointSpec& checkpoint = spec_.checkpoint;
  const bool by_steps = checkpoint.every_steps > 0 && step % checkpoint.every_steps == 0;
  const bool by_epochs =
      checkpoint.every_epochs > 0 && is_epoch_end(step) && epochs_done(step) % checkpoint.every_epochs == 0;
  return by_steps || by_epochs;
}

Rates Calendar::rates_after(int64_t step, std::optional<double> plateau_lr) const {
  return rates_at(spec_.schedule, spec_.optimizer.lr, step, epochs_done(step), total_steps_, epoch_ended(total_steps_),
                  plateau_lr);
}

}  // namespace tutti::train
