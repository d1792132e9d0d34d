// What a model shows while it trains and when it has ended: to other threads, and in its metrics log.
#ifndef TUTTI_SRC_TRAIN_RUN_REPORT_H
#define TUTTI_SRC_TRAIN_RUN_REPORT_H

#include <chrono>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "src/train/calendar.h"
#include "src/train/progress.h"

namespace tutti::train {

enum class ModelState { kRunning, kFinished, kFailed, kCheckpointed, kPaused };
std::string name_of(ModelState state);

/// How a model stands.
struct ModelReport {
  ModelState state = ModelState::kRunning;
  std::string reason;  ///< of a failure or a pause
  int64_t epoch = 0, step = 0, total_steps = 0;
  double train_loss = 0;      ///< mean of the epoch so far, or of the last one
  nlohmann::json evaluation;  ///< the last one's results; null before
};

/// A report which the model's own threads write and any thread reads.
class RunReport {
 public:
  void publish(const Progress& progress, const Calendar& calendar);
  void publish_evaluation(const nlohmann::json& results);
  void end(ModelState state, const std::string& reason);
  ModelReport get() const;

 private:
  mutable std::mutex mutex_;
  ModelReport report_;
};

/// A line of metrics.jsonl for the epoch that has ended; `results` is Evaluation::results, or null.
nlohmann::json epoch_line(const Progress& progress, const Calendar& calendar, const nlohmann::json& results);

/// A line for the step that ends with `step` steps done.
nlohmann::json step_line(int64_t step, const Calendar& calendar, double loss, double gradient_norm, double lr);

/// The text with whatever is not UTF-8 replaced: a reason may hold a file name in any encoding, JSON takes UTF-8 only.
std::string as_utf8(const std::string& text);

}  // namespace tutti::train

#endif
