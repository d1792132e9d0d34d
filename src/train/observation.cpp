#include "src/train/observation.h"

#include <cmath>

#include "src/program/metric.h"
#include "src/train/evaluation.h"

namespace tutti::train {

namespace {

bool is_better(const std::string& metric, double value, const std::optional<double>& best, double min_delta) {
  if (!std::isfinite(value)) return false;
  if (!best) return true;
  const bool greater = metric != "loss" && program::greater_is_better(program::metric_named(metric));
  return greater ? value > *best + min_delta : value < *best - min_delta;
}

void count_bad_epochs(const EarlyStopping& rule, double value, Progress& progress) {
  if (is_better(rule.metric, value, progress.early_best, rule.min_delta)) {
    progress.early_best = value;
    progress.early_bad_epochs = 0;
  } else {
    progress.stopped_early = ++progress.early_bad_epochs >= rule.patience;
  }
}

}  // namespace

bool observe(const ModelSpec& spec, const nlohmann::json& results, Progress& progress) {
  progress.last_evaluation = results;
  if (spec.schedule.kind == ScheduleSpec::Kind::kPlateau) {
    progress.plateau.observe(spec.schedule, spec.optimizer.lr, Evaluation::deciding_value(results, "loss"));
  }
  if (spec.early_stopping) {
    const EarlyStopping& rule = *spec.early_stopping;
    count_bad_epochs(rule, Evaluation::deciding_value(results, rule.metric), progress);
  }
  if (spec.checkpoint.best.empty()) return false;
  const double value = Evaluation::deciding_value(results, spec.checkpoint.best);
  if (!is_better(spec.checkpoint.best, value, progress.best_value, 0)) return false;
  progress.best_value = value;
  return true;
}

}  // namespace tutti::train
