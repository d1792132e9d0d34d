// What training a model costs: predicted seconds and bytes, before anything runs.
#ifndef TUTTI_PARTITION_COST_MODEL_H
#define TUTTI_PARTITION_COST_MODEL_H

#include <cstdint>
#include <string>

#include "comm/team.h"
#include "src/program/program.h"
#include "src/train/model_spec.h"
#include "src/train/streamed_sets.h"
#include "src/train/trial.h"

namespace tutti::partition {

/// What one lane of a rank of speed 1 achieves. The defaults are a server core's, within a factor of two; `tutti
/// calibrate` measures them. Only their ratios matter to a placement.
struct Machine {
  double flops_per_second = 3e10;     ///< float; double has half
  double bytes_per_second = 8e9;      ///< of memory traffic
  double instruction_seconds = 4e-6;  ///< fixed cost of an instruction, forward or backward
};

/// The messages between two ranks: latency_seconds + bytes * seconds_per_byte.
struct Link {
  double latency_seconds = 2e-5;
  double seconds_per_byte = 1e-9;
};

/// The parts of a model's memory.
struct MemoryCost {
  int64_t state_bytes = 0;           ///< parameters, moments, every grain's buffers, evaluation statistics
  int64_t gradient_bytes = 0;        ///< one flat gradient
  int64_t element_count = 0;         ///< of a flat gradient
  bool accumulates = false;          ///< gradient accumulation: one more flat gradient per lane at work
  train::StreamedSets streams = {};  ///< held once per rank, whatever the number of models that read them
  int64_t transient_bytes = 0;       ///< what a lane's region needs while it runs one grain or one evaluation batch
};

/// What one model costs. Seconds are those of one lane of a rank of speed 1 over the whole training.
struct ModelCost {
  std::string name;
  int64_t grain_count = 1;
  int64_t row_count = 0;  ///< training rows of an epoch
  int64_t step_count = 0;
  int64_t asked_ranks = 0;    ///< ModelSpec::ranks
  double grain_seconds = 0;   ///< forward, backward and evaluation of one grain
  double update_seconds = 0;  ///< optimizer pass, which every member of a team does
  MemoryCost memory = {};

  /// The lane seconds of all grains and one update.
  double whole_seconds() const { return static_cast<double>(grain_count) * grain_seconds + update_seconds; }
};

/// Predicts the cost of training `spec` with `program`, from operation and byte counts. Three times the forward
/// operations for forward and backward; memory traffic of every result; a fixed time per instruction. Transient bytes
/// are the peak of live tensors; the gaps that a region's first fit leaves between them are not predicted (a trial
/// measures them).
ModelCost predict_cost(const train::ModelSpec& spec, const program::Program& program, const Machine& machine = {});

/// The same with a trial's times and region bytes in place of the predicted ones.
ModelCost with_trial(ModelCost cost, const train::ModelSpec& spec, const train::TrialResult& trial);

/// The cost of the last `steps_left` steps (less than 0 counts as 0): a model that is resumed takes less time but as
/// much memory.
ModelCost with_steps_left(ModelCost cost, int64_t steps_left);

/// The bytes a model takes on the member at `position` of its team, without the lanes' regions: state, the pool of
/// gradients with its pending partial sums, and the buffers of the exchange.
int64_t member_bytes(const MemoryCost& memory, const comm::Team& team, int position, int64_t lane_count);

/// The time of one exact sum of `gradient_bytes` over a team: each member sends its subtrees' pieces (reduce-scatter)
/// and its piece of the sum (all-gather) to every other. A team of one needs none.
double exchange_seconds(const Link& link, const comm::Team& team, int64_t gradient_bytes);

/// The bytes that all members together send for one such sum.
int64_t exchange_bytes(const comm::Team& team, int64_t gradient_bytes);

}  // namespace tutti::partition

#endif
