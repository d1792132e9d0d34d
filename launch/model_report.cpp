#include "launch/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/program/metric.h"
#include "src/train/evaluation.h"

namespace tutti::launch {

namespace {

std::string first_metric(const train::ModelSpec& spec) {
  return spec.metrics.empty() ? "loss" : program::name_of(spec.metrics.front());
}

/// A key by which a smaller value is a better model, over all metrics alike.
double rank_key(const nlohmann::json& report, const train::ModelSpec& spec) {
  const std::string metric = first_metric(spec);
  const double value = train::Evaluation::deciding_value(report, metric);
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return metric != "loss" && program::greater_is_better(program::metric_named(metric)) ? -value : value;
}

std::string part_text(const nlohmann::json& report, const char* part) {
  if (!report.contains(part) || !report[part].is_object()) return "";
  std::string text;
  for (const auto& [metric, value] : report[part].items()) {
    if (value.is_number()) text += fmt::format("  {} {} {:.4f}", part, metric, value.get<double>());
  }
  return text;
}

}  // namespace

nlohmann::json report_of(const train::ModelSpec& spec, const train::ModelReport& report) {
  nlohmann::json json = {{"name", spec.name},
                         {"state", train::name_of(report.state)},
                         {"labels", spec.labels},
                         {"epoch", report.epoch},
                         {"step", report.step},
                         {"total_steps", report.total_steps},
                         {"train_loss", report.train_loss}};
  if (!report.reason.empty()) json["reason"] = report.reason;
  if (report.evaluation.is_object()) json.update(report.evaluation);
  return json;
}

std::string ranking(const nlohmann::json& reports, const std::vector<train::ModelSpec>& specs) {
  struct Entry {
    const nlohmann::json* report;
    double key;
  };
  std::vector<Entry> entries;
  size_t width = 5;
  for (const nlohmann::json& report : reports) {
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const auto& s) { return s.name == report.value("name", ""); });
    if (spec == specs.end()) continue;
    const bool failed = report.value("state", "") == "failed";
    entries.push_back({&report, failed ? std::numeric_limits<double>::infinity() : rank_key(report, *spec)});
    width = std::max(width, spec->name.size());
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  std::string text;
  int place = 0;
  for (const Entry& entry : entries) {
    const nlohmann::json& report = *entry.report;
    text += fmt::format("{:>3}  {:<{}}", ++place, report.value("name", ""), width);
    text += part_text(report, "validation") + part_text(report, "test");
    if (report.value("state", "") != "finished") text += "  " + report.value("state", "");
    if (report.contains("reason")) text += ": " + report["reason"].get<std::string>();
    text += '\n';
  }
  return text;
}

}  // namespace tutti::launch
