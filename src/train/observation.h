// What an evaluation changes: the plateau schedule, early stopping, and which weights are the best.
#ifndef TUTTI_SRC_TRAIN_OBSERVATION_H
#define TUTTI_SRC_TRAIN_OBSERVATION_H

#include <nlohmann/json.hpp>

#include "src/train/model_spec.h"
#include "src/train/progress.h"

namespace tutti::train {

/// Records `results` (Evaluation::results) in `progress`. True when these weights are the best so far by
/// checkpoint.best.
bool observe(const ModelSpec& spec, const nlohmann::json& results, Progress& progress);

}  // namespace tutti::train

#endif
