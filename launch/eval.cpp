#include "launch/eval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/lane_thread.h"
#include "launch/saved_job.h"
#include "launch/text_table.h"
#include "launch/trained_model.h"
#include "src/train/unified_network.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHelp = R"(Usage: tutti eval OUT [options]

Loss and metrics of the models in the output folder OUT, on the validation and test data of their
job, by the same sums as training's own evaluations. Of the job only OUT and the data are needed.
Models without weights or without such data are named and left out.

{}
Examples:
  tutti eval runs/digits
  tutti eval runs/digits --model 'lenet-*' --weights best --data 'more/digits-*.h5'
)";

CommandForm form() {
  using enum OptionKind;
  return {"eval",
          "out",
          "the output folder of a job",
          kHelp,
          {{"out", kText, "the output folder"},
           {"model,m", kTexts, "only this model, or those that match a pattern (may be repeated)"},
           {"data", kTexts, "evaluate on these shards instead of the job's (may be repeated)"},
           {"weights", kText, "final, best or step_N (default: final, else the newest checkpoint)"},
           {"json", kFlag, "print JSON"}}};
}

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

/// The models to evaluate. Every pattern must match one.
std::vector<train::ModelSpec> chosen_models(const CommandLine& line, const Job& job) {
  const std::vector<std::string> patterns = line.texts("model");
  std::vector<std::string> names;
  for (const train::ModelSpec& model : job.models) names.push_back(model.name);
  for (const std::string& pattern : patterns) {
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches(name, {pattern}); })) {
      line.refuse(fmt::format("--model: expected a model of {}, found `{}`", fmt::join(names, ", "), pattern));
    }
  }
  std::vector<train::ModelSpec> chosen;
  std::ranges::copy_if(job.models, std::back_inserter(chosen),
                       [&](const train::ModelSpec& model) { return matches(model.name, patterns); });
  return chosen;
}

/// The model's results; none when there are no data to evaluate it on.
std::optional<nlohmann::json> evaluate(train::ModelSpec spec, const fs::path& weights, train::Programs& programs,
                                       const std::shared_ptr<const data::DataSet>& other_data) {
  if (other_data) {
    spec.data.validation = nullptr;
    spec.data.test = other_data;
  }
  if (!spec.data.validation && !spec.data.test) return std::nullopt;
  const auto program = programs.of(spec);
  nlohmann::json result = {{"name", spec.name}, {"weights", weights.parent_path().filename().string()}};
  nlohmann::json metrics = TrainedModel(std::move(spec), program, weights).evaluate();
  if (other_data) metrics = {{"data", metrics.at("test")}};
  result.update(metrics);
  return result;
}

/// A row per model; a column for each metric that any of them has.
std::string table_text(const nlohmann::json& results) {
  Row head = {"model", "weights"};
  for (const nlohmann::json& result : results) {
    for (const auto& [part, metrics] : result.items()) {
      if (!metrics.is_object()) continue;
      for (const auto& metric : metrics.items()) {
        const std::string column = part + "." + metric.key();
        if (std::ranges::find(head, column) == head.end()) head.push_back(column);
      }
    }
  }
  std::vector<Row> rows = {head};
  for (const nlohmann::json& result : results) {
    Row row = {result["name"], result["weights"]};
    for (size_t c = 2; c < head.size(); ++c) {
      const size_t dot = head[c].find('.');
      const nlohmann::json value = result.value(head[c].substr(0, dot), nlohmann::json::object())
                                       .value(head[c].substr(dot + 1), nlohmann::json());
      row.push_back(value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-");
    }
    rows.push_back(std::move(row));
  }
  return table_of(rows);
}

}  // namespace

int eval_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  const fs::path out = line.text("out");
  compute_as_lane();
  const Job job = load_saved_job(out);
  const auto other_data = line.has("data") ? data::DataSet::open(line.texts("data")) : nullptr;
  train::Programs programs;
  nlohmann::json results = nlohmann::json::array();
  for (const train::ModelSpec& model : chosen_models(line, job)) {
    const fs::path folder = out / "models" / model.name;
    const auto weights = find_weights(folder, line.text("weights", ""));
    if (weights) {
      if (const auto result = evaluate(model, *weights, programs, other_data)) {
        results.push_back(*result);
      } else {
        fmt::print(stderr,
                   "tutti eval: model {}: expected validation or test data in the job, found neither; left out. "
                   "Give shards with --data\n",
                   model.name);
      }
    } else {
      fmt::print(stderr, "tutti eval: model {}: expected weights{}, found {}; left out\n", model.name,
                 line.has("weights") ? " `" + line.text("weights") + "`" : "", known_weights(folder));
    }
  }
  if (results.empty()) line.refuse(fmt::format("{}: expected models with weights and data, found none", out.string()));
  fmt::print("{}", line.has("json") ? results.dump(1) + "\n" : table_text(results));
  return kDone;
}

}  // namespace tutti::launch
