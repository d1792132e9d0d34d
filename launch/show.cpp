#include "launch/show.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/program_options.hpp>
#include <map>
#include <sstream>

#include "launch/command.h"

namespace tutti::launch {

namespace po = boost::program_options;

namespace {

enum class Form { kTable, kCsv, kJson };

struct ShowOptions {
  std::string out;
  int64_t best = 0;  // 0 = all
  std::vector<std::string> by;
  std::string metric;
  Form form = Form::kTable;
};

po::options_description declare_options() {
  po::options_description options("Options");
  options.add_options()("help,h", "show this text")("out", po::value<std::string>(), "the output folder")(
      "best", po::value<int64_t>(), "only the best N models (or groups)")(
      "by", po::value<std::string>(),
      "group by sweep variables (comma-separated): mean and deviation over the models that agree in them")(
      "metric", po::value<std::string>(),
      "what ranks the models: accuracy, test.loss, ... (default: the first but loss)")(
      "csv", "print comma-separated values")("json", "print JSON");
  return options;
}

constexpr const char* kHelp = R"(Usage: tutti show OUT [options]

A table of the models in the output folder OUT of a finished or running job, best first.

{}
Examples:
  tutti show runs/digits --best 5
  tutti show runs/digits --by width,optimizer      mean and deviation over lr and seeds
)";

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

ShowOptions options_from(const po::variables_map& values) {
  ShowOptions options;
  if (!values.contains("out"))
    throw UsageError("tutti show: expected the output folder of a job, found none; `tutti show --help` shows how");
  options.out = values["out"].as<std::string>();
  if (values.contains("best")) {
    options.best = values["best"].as<int64_t>();
    if (options.best < 1) throw UsageError(fmt::format("--best: expected at least 1, found {}", options.best));
  }
  if (values.contains("by")) options.by = split_at_commas(values["by"].as<std::string>());
  if (values.contains("metric")) options.metric = values["metric"].as<std::string>();
  if (values.contains("csv") && values.contains("json")) {
    throw UsageError("tutti show: expected --csv or --json, found both");
  }
  if (values.contains("csv")) options.form = Form::kCsv;
  if (values.contains("json")) options.form = Form::kJson;
  return options;
}

template <typename Entry>
void keep_best(std::vector<Entry>& entries, int64_t count) {
  if (count > 0 && count < static_cast<int64_t>(entries.size())) entries.resize(static_cast<size_t>(count));
}

std::string counts_line(const std::vector<ModelResult>& results) {
  std::map<std::string, int64_t> counts;
  for (const ModelResult& result : results) ++counts[result.state];
  std::string text = fmt::format("{} models:", results.size());
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
  if (metric.empty()) throw UsageError("--by: expected models with metrics, found none yet");
  std::vector<ResultGroup> groups = group_by(results, options.by, metric);
  keep_best(groups, options.best);
  if (options.form == Form::kCsv) return group_csv(groups, options.by, metric);
  if (options.form == Form::kJson) return group_json(groups, options.by, metric).dump(1) + "\n";
  return group_table(groups, options.by, metric);
}

}  // namespace

int show_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  const po::options_description declared = declare_options();
  po::positional_options_description positional;
  positional.add("out", 1);
  try {
    po::store(po::command_line_parser(arguments).options(declared).positional(positional).run(), values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; `tutti show --help` lists the options", error.what()));
  }
  if (values.contains("help")) {
    fmt::print(fmt::runtime(kHelp), fmt::streamed(declared));
    return kDone;
  }
  const ShowOptions options = options_from(values);
  const std::vector<ModelResult> results = read_results(options.out);
  const std::string metric = deciding_metric(results, options.metric);
  fmt::print("{}", options.by.empty() ? models_text(results, metric, options) : groups_text(results, metric, options));
  return kDone;
}

}  // namespace tutti::launch
