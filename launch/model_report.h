// The JSON form of a model's state, as it travels between ranks and stands in summary.json.
#ifndef TUTTI_LAUNCH_MODEL_REPORT_H
#define TUTTI_LAUNCH_MODEL_REPORT_H

#include <nlohmann/json.hpp>

#include "src/train/model_run.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// {"name", "state", "reason", "labels", "epoch", "step", "total_steps", "train_loss", "validation", "test"}.
nlohmann::json report_of(const train::ModelSpec& spec, const train::ModelReport& report);

}  // namespace tutti::launch

#endif
