// What happens at which optimizer step: a pure function of a model's settings and the size of its data.
#ifndef TUTTI_SRC_TRAIN_CALENDAR_H
#define TUTTI_SRC_TRAIN_CALENDAR_H

#include <cstdint>
#include <optional>

#include "src/train/grain_trainer.h"
#include "src/train/model_spec.h"
#include "src/train/schedule.h"

namespace tutti::train {

/// Steps are counted as done: step 0 is the state before the first one.
class Calendar {
 public:
  /// `spec` must outlive this.
  Calendar(const ModelSpec& spec, int64_t batches_per_epoch);

  /// The greatest int64 where the settings ask for more.
  int64_t total_steps() const { return total_steps_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  /// Whole epochs done after `step` steps.
  int64_t epochs_done(int64_t step) const { return step / steps_per_epoch_; }

  /// The epoch that step belongs to which ended with `step` steps done; counted from 1.
  int64_t epoch_ended(int64_t step) const { return step / steps_per_epoch_ + (step % steps_per_epoch_ != 0); }

  /// The micro-batches of the step that begins after `step` steps.
  StepBatches batches_after(int64_t step) const;

  bool is_done(int64_t step) const { return step >= total_steps_; }
  bool is_epoch_end(int64_t step) const { return step % steps_per_epoch_ == 0 || is_done(step); }
  bool evaluation_due(int64_t step) const;
  bool checkpoint_due(int64_t step) const;
  bool log_due(int64_t step) const { return spec_.log_every > 0 && step % spec_.log_every == 0; }

  /// The rates of the step that begins after `step` steps.
  Rates rates_after(int64_t step, std::optional<double> plateau_lr) const;

 private:
  const ModelSpec& spec_;
  int64_t batches_per_epoch_, steps_per_epoch_, total_steps_;
};

}  // namespace tutti::train

#endif
