// Models that a job has but does not train now.
#include "src/train/model_rest.h"

#include <exception>

#include "src/train/batch_source.h"
#include "src/train/calendar.h"
#include "src/train/checkpoint.h"
#include "src/train/model_files.h"
#include "src/train/progress.h"

namespace tutti::train {

namespace {

Calendar calendar_of(const ModelSpec& spec) { return {spec, batches_per_epoch(spec)}; }

}  // namespace

bool is_finished(const std::filesystem::path& folder, const ModelSpec& spec, int64_t step) {
  const CheckpointStore store(folder);
  Progress progress;
  try {
    progress = progress_of(store.manifest(step), spec);
  } catch (const std::exception&) {
    return false;  // to resume it says what is wrong, with the model's name
  }
  const bool is_last = progress.stopped_early || calendar_of(spec).is_done(progress.step);
  return is_last && store.holds_weights_of("final", step);
}

ModelReport report_at_rest(const std::filesystem::path& folder, const ModelSpec& spec,
                           std::optional<int64_t> resumed_step, const Rest& rest) {
  Progress progress;
  if (resumed_step) progress = progress_of(CheckpointStore(folder).manifest(*resumed_step), spec);
  RunReport report;
  report.publish(progress, calendar_of(spec));
  report.publish_evaluation(progress.last_evaluation);
  report.end(rest.state, as_utf8(rest.reason));
  return report.get();
}

}  // namespace tutti::train
