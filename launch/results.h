// The models' results as an output folder holds them, of a finished or of a running job.
#ifndef TUTTI_LAUNCH_RESULTS_H
#define TUTTI_LAUNCH_RESULTS_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti::launch {

/// One model's standing.
struct ModelResult {
  std::string name;
  std::string state;   ///< "finished", "failed", "running", "checkpointed", "paused", or "stopped" (by a kill)
  std::string reason;  ///< of a failure
  nlohmann::json labels = nlohmann::json::object();  ///< sweep variables and their values
  int64_t epoch = 0, step = 0;
  nlohmann::json metrics = nlohmann::json::object();  ///< {"train": {"loss": ..}, "validation": {...}, "test": {...}}

  /// A metric: "test.accuracy" names the data; "accuracy" is validation's or, where the model has no such, test's. None
  /// where it is absent or not finite.
  std::optional<double> metric(const std::string& name) const;
};

/// The standings that reports (launch/model_report.h) tell of.
std::vector<ModelResult> results_of(const nlohmann::json& reports);

/// All models of OUT: from summary.json when the job has ended, else from each model's metrics.jsonl. Ordered as in the
/// summary, or by name. Throws UsageError when `out` is not an output folder.
std::vector<ModelResult> read_results(const std::filesystem::path& out);

/// The full names of all metrics that occur: train's first, then validation's, then test's.
std::vector<std::string> metric_names(const std::vector<ModelResult>& results);

/// The metric that ranks the models: `wanted` ("accuracy" or "test.accuracy", as ModelResult::metric takes them), or
/// when empty the first of validation's and test's but loss, else loss. Empty when there is none at all. Throws
/// UsageError, naming the known ones, when `wanted` does not occur.
std::string deciding_metric(const std::vector<ModelResult>& results, const std::string& wanted);

/// Best first by a metric. Models without it come after, grouped by the metric that they have and best first in it;
/// models without any come last. Stable.
void sort_best_first(std::vector<ModelResult>& results, const std::string& metric);

/// The models that have all of these sweep variables. Throws UsageError when none has.
std::vector<ModelResult> with_variables(const std::vector<ModelResult>& results,
                                        const std::vector<std::string>& variables);

/// The models that have the same values of some sweep variables.
struct ResultGroup {
  std::vector<std::string> values;  ///< of the variables, in their order
  int64_t model_count = 0;          ///< those that have the metric
  double mean = 0;
  double deviation = 0;  ///< of the sample (n - 1); 0 for one model
};

/// Groups by sweep variables, best mean first; models that lack a variable or the metric are left out. Throws
/// UsageError when no model has all variables.
std::vector<ResultGroup> group_by(const std::vector<ModelResult>& results, const std::vector<std::string>& variables,
                                  const std::string& metric);

/// A label's or metric's value as text: strings without quotes.
std::string text_of(const nlohmann::json& value);

}  // namespace tutti::launch

#endif
