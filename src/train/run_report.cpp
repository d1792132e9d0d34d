#include "src/train/run_report.h"

namespace tutti::train {

std::string name_of(ModelState state) {
  switch (state) {
    case ModelState::kRunning:
      return "running";
    case ModelState::kFinished:
      return "finished";
    case ModelState::kFailed:
      return "failed";
    case ModelState::kCheckpointed:
      return "checkpointed";
    case ModelState::kPaused:
      return "paused";
  }
  return "unknown";
}

void RunReport::publish(const Progress& progress, const Calendar& calendar) {
  const std::lock_guard lock(mutex_);
  report_.step = progress.step;
  report_.total_steps = calendar.total_steps();
  report_.epoch = calendar.epochs_done(progress.step);
  report_.train_loss =
      progress.epoch_denominator > 0 ? progress.epoch_loss_sum / progress.epoch_denominator : progress.last_train_loss;
}

void RunReport::publish_evaluation(const nlohmann::json& results) {
  const std::lock_guard lock(mutex_);
  report_.evaluation = results;
}

void RunReport::end(ModelState state, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  report_.state = state;
  report_.reason = reason;
}

ModelReport RunReport::get() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

nlohmann::json epoch_line(const Progress& progress, const Calendar& calendar, const nlohmann::json& results) {
  nlohmann::json line = {{"event", "epoch"},
                         {"epoch", calendar.epoch_ended(progress.step)},
                         {"step", progress.step},
                         {"train_loss", progress.last_train_loss},
                         {"lr", calendar.rates_after(progress.step, progress.plateau.lr).lr}};
  if (results.is_object()) line.update(results);
  return line;
}

nlohmann::json step_line(int64_t step, const Calendar& calendar, double loss, double gradient_norm, double lr) {
  return {{"event", "step"}, {"epoch", calendar.epoch_ended(step)}, {"step", step}, {"loss", loss},
          {"lr", lr},        {"gradient_norm", gradient_norm}};
}

std::string as_utf8(const std::string& text) {
  const std::string clean = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(clean).get<std::string>();
}

}  // namespace tutti::train
