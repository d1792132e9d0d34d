// How far a model's training has come: all of a checkpoint that is not a tensor.
#ifndef TUTTI_SRC_TRAIN_PROGRESS_H
#define TUTTI_SRC_TRAIN_PROGRESS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "src/train/schedule.h"

namespace tutti::train {

/// The same on every member of a team, at every step boundary.
struct Progress {
  int64_t step = 0;           ///< optimizer steps done
  double epoch_loss_sum = 0;  ///< since the epoch began
  double epoch_denominator = 0;
  std::vector<int64_t> grain_rows;  ///< training rows each grain has seen
  PlateauState plateau;
  std::optional<double> early_best;  ///< early stopping's best value
  int64_t early_bad_epochs = 0;
  bool stopped_early = false;
  std::optional<double> best_value;  ///< of checkpoint.best
  nlohmann::json last_evaluation;    ///< {"validation": {"loss": ..}, "test": {..}}; null before the first
  double last_train_loss = 0;        ///< mean of the last complete epoch
};

void to_json(nlohmann::json& json, const Progress& progress);
void from_json(const nlohmann::json& json, Progress& progress);

}  // namespace tutti::train

#endif
