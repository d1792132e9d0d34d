#include "launch/show.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/counted.h"

namespace tutti::launch {

namespace {

enum class Form { kTable, kCsv, kJson };

struct ShowOptions {
  std::string out;
  int64_t best = 0;  // 0 = all
  std::vector<std::string> by;
  std::string metric;
  Form form = Form::kTable;
};

constexpr const char* kHelp = R"(Usage: tutti show OUT [options]

A table of the models in the output folder OUT of a finished or running job, best first: by the
validation metric or, for models without validation data, the same metric on test data. Models
without that metric come after, grouped by the metric they have; models without any come last.

{}
Examples:
  tutti show runs/digits --best 5
  tutti show runs/digits --by width,optimizer      mean and deviation over lr and seeds
)";

CommandForm form() {
  using enum OptionKind;
  return {"show",
          "out",
          "the output folder of a job",
          kHelp,
          {{"out", kText, "the output folder"},
           {"best", kNumber, "only the best N models (or groups)"},
           {"by", kText,
            "group by sweep variables (comma-separated): mean and deviation over the models that agree in them"},
           {"metric", kText,
            "what ranks the models: accuracy (on validation, else test data), test.loss, ... (default: the first but "
            "loss)"},
           {"csv", kFlag, "print comma-separated values"},
           {"json", kFlag, "print JSON"}}};
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

ShowOptions options_from(const CommandLine& line) {
  ShowOptions options;
  options.out = line.text("out");
  options.best = line.integer("best", options.best, /*least=*/1);
  options.by = split_at_commas(line.text("by", ""));
  options.metric = line.text("metric", "");
  if (line.has("csv") && line.has("json")) line.refuse("expected --csv or --json, found both");
  if (line.has("csv")) options.form = Form::kCsv;
  if (line.has("json")) options.form = Form::kJson;
  return options;
}

template <typename Entry>
void keep_best(std::vector<Entry>& entries, int64_t count) {
  if (count > 0 && count < static_cast<int64_t>(entries.size())) entries.resize(static_cast<size_t>(count));
}

std::string counts_line(const std::vector<ModelResult>& results) {
  std::map<std::string, int64_t> counts;
  for (const ModelResult& result : results) ++counts[result.state];
  std::string text = counted(results.size(), "model") + ":";
  for (const auto& [state, count] : counts) text += fmt::format(" {} {},", count, state);
  text.back() = '\n';
  return text;
}

std::string models_text(std::vector<ModelResult> results, const std::string& metric, const ShowOptions& options) {
  const std::string counts = counts_line(results);
  sort_best_first(results, metric);
  keep_best(results, options.best);
  if (options.form == Form::kCsv) return model_csv(results);
  if (options.form == Form::kJson) return model_json(results).dump(1) + "\n";
  return counts + (metric.empty() ? "" : "Best first by " + metric + "\n") + model_table(results);
}

std::string groups_text(const std::vector<ModelResult>& results, const std::string& metric,
                        const ShowOptions& options) {
  if (metric.empty()) throw UsageError("--by: expected metrics of the models with these variables, found none yet");
  std::vector<ResultGroup> groups = group_by(results, options.by, metric);
  keep_best(groups, options.best);
  if (options.form == Form::kCsv) return group_csv(groups, options.by, metric);
  if (options.form == Form::kJson) return group_json(groups, options.by, metric).dump(1) + "\n";
  return group_table(groups, options.by, metric);
}

}  // namespace

int show_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  const ShowOptions options = options_from(line);
  std::vector<ModelResult> results = read_results(options.out);
  if (!options.by.empty()) results = with_variables(results, options.by);
  const std::string metric = deciding_metric(results, options.metric);
  fmt::print("{}", options.by.empty() ? models_text(results, metric, options) : groups_text(results, metric, options));
  return kDone;
}

}  // namespace tutti::launch
