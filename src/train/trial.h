// Trial steps: what one grain of a model really needs, measured before training starts.
#ifndef TUTTI_SRC_TRAIN_TRIAL_H
#define TUTTI_SRC_TRAIN_TRIAL_H

#include <cstdint>
#include <memory>
#include <string>

#include "src/program/program.h"
#include "src/train/model_spec.h"

namespace tutti::train {

struct TrialResult {
  int64_t region_bytes = 0;       ///< most that a lane's region held
  double step_seconds = 0;        ///< one grain, forward, loss and backward, when warm
  double evaluation_seconds = 0;  ///< one evaluation batch of each data set
};

/// Equal for two models exactly when one trial can stand for both: graph, precision, engine, loss, metrics and sizes.
std::string trial_shape(const ModelSpec& spec, const program::Program& program);

/// What a lane is predicted to hold at most while it runs one grain or one evaluation batch: the program's values, the
/// batch, and the loss's own tensors (the outputs' gradient and two of its size on the way there).
int64_t predicted_lane_bytes(const ModelSpec& spec, const program::Program& program);

/// Runs one grain of the first batch (the second time is timed), and one evaluation batch of each data set, on memory
/// of its own: the model itself is not touched. Throws what the data or a kernel throws.
TrialResult run_trial(const ModelSpec& spec, const std::shared_ptr<const program::Program>& program);

}  // namespace tutti::train

#endif
