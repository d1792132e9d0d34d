// Forward, loss and backward of single grains of one model.
#ifndef TUTTI_SRC_TRAIN_GRAIN_TRAINER_H
#define TUTTI_SRC_TRAIN_GRAIN_TRAINER_H

#include <cstdint>
#include <memory>
#include <vector>

#include "src/program/program.h"
#include "src/train/batch_source.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"

namespace tutti::train {

/// Which micro-batches make up an optimizer step: batches [first_batch, last_batch) of an epoch.
struct StepBatches {
  int64_t epoch = 0;
  int64_t first_batch = 0;
  int64_t last_batch = 0;
};

/// What travels beside a gradient, in this order.
struct GrainScalars {
  enum Index { kLoss, kDenominator, kCheckpointVotes, kCount };
};

/// Runs the grains of one model. compute() may be called by several lanes at once, each with its own slot.
class GrainTrainer {
 public:
  /// `spec`, `memory` and `source` must outlive this. `slot_count` is how many grains may run at the same time.
  GrainTrainer(const ModelSpec& spec, std::shared_ptr<const program::Program> program, ModelMemory& memory,
               const TrainingSource& source, int64_t slot_count);

  /// Writes the gradient of the loss sum of this grain's rows in all micro-batches of the step into pool entry
  /// `buffer`; returns the scalars. Changes the grain's running statistics. Allocates from ATen's current allocator and
  /// gives all of it back.
  std::vector<double> compute(const StepBatches& batches, int64_t step, int64_t grain, int buffer, int slot);

  /// Pool entries it needs beyond those for grains: with gradient accumulation, one per slot.
  static int64_t scratch_count(const ModelSpec& spec, int64_t slot_count) {
    return spec.accumulate > 1 ? slot_count : 0;
  }

 private:
  void bind(program::Frame& frame, int64_t grain, size_t pool_entry) const;
  void run(program::Frame& frame, size_t pool_entry, Batch batch, std::vector<double>& scalars) const;

  const ModelSpec& spec_;
  std::shared_ptr<const program::Program> program_;
  ModelMemory& memory_;
  const TrainingSource& source_;
  std::vector<program::Frame> frames_;  ///< by slot
  data::RandomKey dropout_key_;
};

}  // namespace tutti::train

#endif
