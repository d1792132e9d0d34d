#include "src/train/progress.h"

#include <string>

namespace tutti::train {

namespace {

nlohmann::json json_of(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::optional<double> optional_double(const nlohmann::json& json) {
  return json.is_null() ? std::optional<double>() : json.get<double>();
}

}  // namespace

void to_json(nlohmann::json& json, const Progress& progress) {
  json = {{"step", progress.step},
          {"epoch_loss_sum", progress.epoch_loss_sum},
          {"epoch_denominator", progress.epoch_denominator},
          {"grain_rows", progress.grain_rows},
          {"plateau",
           {{"best", json_of(progress.plateau.best)},
            {"bad_count", progress.plateau.bad_count},
            {"cooldown_left", progress.plateau.cooldown_left},
            {"lr", json_of(progress.plateau.lr)}}},
          {"early_best", json_of(progress.early_best)},
          {"early_bad_epochs", progress.early_bad_epochs},
          {"stopped_early", progress.stopped_early},
          {"best_value", json_of(progress.best_value)},
          {"last_evaluation", progress.last_evaluation},
          {"last_train_loss", progress.last_train_loss}};
}

void from_json(const nlohmann::json& json, Progress& progress) {
  progress.step = json.at("step").get<int64_t>();
  progress.epoch_loss_sum = json.at("epoch_loss_sum").get<double>();
  progress.epoch_denominator = json.at("epoch_denominator").get<double>();
  progress.grain_rows = json.at("grain_rows").get<std::vector<int64_t>>();
  const nlohmann::json& plateau = json.at("plateau");
  progress.plateau.best = optional_double(plateau.at("best"));
  progress.plateau.bad_count = plateau.at("bad_count").get<int64_t>();
  progress.plateau.cooldown_left = plateau.at("cooldown_left").get<int64_t>();
  progress.plateau.lr = optional_double(plateau.at("lr"));
  progress.early_best = optional_double(json.at("early_best"));
  progress.early_bad_epochs = json.at("early_bad_epochs").get<int64_t>();
  progress.stopped_early = json.at("stopped_early").get<bool>();
  progress.best_value = optional_double(json.at("best_value"));
  progress.last_evaluation = json.at("last_evaluation");
  progress.last_train_loss = json.at("last_train_loss").get<double>();
}

}  // namespace tutti::train
