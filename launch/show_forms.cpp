// The forms in which `tutti show` prints results: tables, comma-separated values, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "launch/show.h"
#include "launch/text_table.h"

namespace tutti::launch {

namespace {

std::string csv_of(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    for (const std::string& cell : row) text += csv_cell(cell) + ',';
    text.replace(text.size() - 1, 1, "\r\n");
  }
  return text;
}

/// Six digits for people, all digits for programs.
enum class Digits { kShort, kAll };

std::string number(std::optional<double> value, Digits digits) {
  if (!value) return digits == Digits::kShort ? "-" : "";
  return digits == Digits::kShort ? fmt::format("{:.4g}", *value) : fmt::format("{}", *value);
}

std::vector<Row> group_rows(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                            const std::string& metric, Digits digits) {
  Row head = variables;
  head.insert(head.end(), {"models", metric, "deviation"});
  std::vector<Row> rows = {head};
  for (const ResultGroup& group : groups) {
    Row& row = rows.emplace_back(group.values);
    row.push_back(fmt::format("{}", group.model_count));
    row.push_back(number(group.mean, digits));
    row.push_back(number(group.model_count > 1 ? std::optional(group.deviation) : std::nullopt, digits));
  }
  return rows;
}

}  // namespace

std::string model_table(const std::vector<ModelResult>& results) {
  const std::vector<std::string> metrics = metric_names(results);
  Row head = {"", "model", "state", "epoch", "step"};
  head.insert(head.end(), metrics.begin(), metrics.end());
  head.emplace_back("");
  std::vector<Row> rows = {head};
  for (const ModelResult& result : results) {
    Row row = {fmt::format("{}", rows.size()), result.name, result.state, fmt::format("{}", result.epoch),
               fmt::format("{}", result.step)};
    for (const std::string& metric : metrics) row.push_back(number(result.metric(metric), Digits::kShort));
    row.push_back(result.reason);
    rows.push_back(std::move(row));
  }
  return table_of(rows);
}

std::string model_csv(const std::vector<ModelResult>& results) {
  const std::vector<std::string> metrics = metric_names(results);
  std::set<std::string> labels;
  for (const ModelResult& result : results) {
    for (const auto& label : result.labels.items()) labels.insert(label.key());
  }
  Row head = {"model", "state", "epoch", "step"};
  head.insert(head.end(), labels.begin(), labels.end());
  head.insert(head.end(), metrics.begin(), metrics.end());
  head.emplace_back("reason");
  std::vector<Row> rows = {head};
  for (const ModelResult& result : results) {
    Row row = {result.name, result.state, fmt::format("{}", result.epoch), fmt::format("{}", result.step)};
    for (const std::string& label : labels) {
      row.push_back(result.labels.contains(label) ? text_of(result.labels[label]) : "");
    }
    for (const std::string& metric : metrics) row.push_back(number(result.metric(metric), Digits::kAll));
    row.push_back(result.reason);
    rows.push_back(std::move(row));
  }
  return csv_of(rows);
}

nlohmann::json model_json(const std::vector<ModelResult>& results) {
  nlohmann::json models = nlohmann::json::array();
  for (const ModelResult& result : results) {
    nlohmann::json model = {{"name", result.name},   {"state", result.state}, {"labels", result.labels},
                            {"epoch", result.epoch}, {"step", result.step},   {"metrics", result.metrics}};
    if (!result.reason.empty()) model["reason"] = result.reason;
    models.push_back(std::move(model));
  }
  return models;
}

std::string group_table(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                        const std::string& metric) {
  std::vector<Row> rows = group_rows(groups, variables, metric, Digits::kShort);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string deviation = rows[i].back();
    rows[i].pop_back();
    rows[i].back() += i == 0 ? " ± deviation" : deviation == "-" ? "" : " ± " + deviation;
  }
  return table_of(rows);
}

std::string group_csv(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                      const std::string& metric) {
  return csv_of(group_rows(groups, variables, metric, Digits::kAll));
}

nlohmann::json group_json(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                          const std::string& metric) {
  nlohmann::json array = nlohmann::json::array();
  for (const ResultGroup& group : groups) {
    nlohmann::json entry = {{"models", group.model_count}, {"metric", metric}, {"mean", group.mean}};
    if (group.model_count > 1) entry["deviation"] = group.deviation;
    for (size_t i = 0; i < variables.size(); ++i) entry["values"][variables[i]] = group.values[i];
    array.push_back(std::move(entry));
  }
  return array;
}

}  // namespace tutti::launch
