// The JSON form of a model's state, as it travels between ranks and stands in summary.json.
#ifndef TUTTI_LAUNCH_MODEL_REPORT_H
#define TUTTI_LAUNCH_MODEL_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/train/model_run.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// {"name", "state", "reason", "labels", "epoch", "step", "total_steps", "train_loss", "validation", "test"}.
nlohmann::json report_of(const train::ModelSpec& spec, const train::ModelReport& report);

/// The final ranking as text: best models first by their deciding metric, failed ones last with their reasons.
std::string ranking(const nlohmann::json& reports, const std::vector<train::ModelSpec>& specs);

}  // namespace tutti::launch

#endif
