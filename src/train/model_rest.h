// Models that a job has but does not train now: they own no memory, and their files stay as they are.
#ifndef TUTTI_SRC_TRAIN_MODEL_REST_H
#define TUTTI_SRC_TRAIN_MODEL_REST_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "src/train/model_spec.h"
#include "src/train/run_report.h"

namespace tutti::train {

/// Why a model rests.
struct Rest {
  ModelState state = ModelState::kFinished;  ///< or kPaused
  std::string reason;                        ///< of a pause
};

/// True when the checkpoint of `step` in a model's folder is its last one and the final weights are those: nothing is
/// left to do. False for a checkpoint that is damaged or another model's.
bool is_finished(const std::filesystem::path& folder, const ModelSpec& spec, int64_t step);

/// How a model at rest stands, by its checkpoint of `resumed_step`, or at its beginning when it has none: the figures
/// that its run reported at that step. Throws CheckpointError when the checkpoint is not this model's, and what the
/// data throw.
ModelReport report_at_rest(const std::filesystem::path& folder, const ModelSpec& spec,
                           std::optional<int64_t> resumed_step, const Rest& rest);

}  // namespace tutti::train

#endif
