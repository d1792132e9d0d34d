#include "launch/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "launch/command.h"
#include "src/program/metric.h"

namespace tutti::launch {

namespace {

constexpr const char* kPartOrder[] = {"train", "validation", "test"};

constexpr const char* kShortNameOrder[] = {"validation", "test"};  // where a metric without its data is looked up

/// "accuracy" of "test.accuracy", and of itself.
std::string short_name(const std::string& metric) { return metric.substr(metric.find('.') + 1); }

bool is_loss(const std::string& metric) { return short_name(metric) == "loss"; }

bool greater_wins(const std::string& metric) {
  return !is_loss(metric) && program::greater_is_better(program::metric_named(short_name(metric)));
}

/// What models may be ranked by: the metrics of validation and test but loss, by their short names; then loss; then
/// training's.
std::vector<std::string> ranking_metrics(const std::vector<ModelResult>& results) {
  std::set<std::string> measured;
  std::vector<std::string> of_training;
  for (const std::string& name : metric_names(results)) {
    if (name.starts_with("train.")) {
      of_training.push_back(name);
    } else {
      measured.insert(short_name(name));
    }
  }
  std::vector<std::string> order(measured.begin(), measured.end());
  std::ranges::stable_partition(order, [](const std::string& name) { return !is_loss(name); });
  order.insert(order.end(), of_training.begin(), of_training.end());
  return order;
}

/// Smaller is better.
double rank_key(double value, bool greater_is_better) { return greater_is_better ? -value : value; }

ResultGroup group_of(std::vector<std::string> values, const std::vector<double>& samples) {
  ResultGroup group{std::move(values), static_cast<int64_t>(samples.size()), 0, 0};
  const double count = static_cast<double>(samples.size());
  for (const double sample : samples) group.mean += sample / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - group.mean) * (sample - group.mean);
  if (samples.size() > 1) group.deviation = std::sqrt(squares / (count - 1));
  return group;
}

}  // namespace

std::optional<double> ModelResult::metric(const std::string& name) const {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) {
    for (const char* part : kShortNameOrder) {
      if (metrics.contains(part) && metrics[part].contains(name)) return metric(fmt::format("{}.{}", part, name));
    }
    return std::nullopt;
  }
  const auto part = metrics.find(name.substr(0, dot));
  if (part == metrics.end()) return std::nullopt;
  const auto value = part->find(name.substr(dot + 1));
  if (value == part->end() || !value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::vector<std::string> metric_names(const std::vector<ModelResult>& results) {
  std::vector<std::string> names;
  for (const char* part : kPartOrder) {
    std::set<std::string> of_part;
    for (const ModelResult& result : results) {
      const auto found = result.metrics.find(part);
      if (found == result.metrics.end()) continue;
      for (const auto& entry : found->items()) of_part.insert(fmt::format("{}.{}", part, entry.key()));
    }
    names.insert(names.end(), of_part.begin(), of_part.end());
  }
  return names;
}

std::string deciding_metric(const std::vector<ModelResult>& results, const std::string& wanted) {
  const std::vector<std::string> ranking = ranking_metrics(results);
  if (wanted.empty()) return ranking.empty() ? "" : ranking.front();
  const std::vector<std::string> names = metric_names(results);
  for (const auto* known : {&ranking, &names}) {
    if (std::ranges::find(*known, wanted) != known->end()) return wanted;
  }
  throw UsageError(fmt::format("--metric: expected one of {}, found {}", fmt::join(names, ", "), wanted));
}

void sort_best_first(std::vector<ModelResult>& results, const std::string& metric) {
  std::vector<std::string> order = ranking_metrics(results);
  order.insert(order.begin(), metric);
  const auto key_of = [&](const ModelResult& result) {
    size_t group = 0;
    while (group < order.size() && !result.metric(order[group])) ++group;
    const bool ranked = group < order.size();
    return std::pair(group, ranked ? rank_key(*result.metric(order[group]), greater_wins(order[group])) : 0.0);
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const ModelResult& a, const ModelResult& b) { return key_of(a) < key_of(b); });
}

std::vector<ModelResult> with_variables(const std::vector<ModelResult>& results,
                                        const std::vector<std::string>& variables) {
  std::vector<ModelResult> having;
  std::set<std::string> known;
  for (const ModelResult& result : results) {
    for (const auto& label : result.labels.items()) known.insert(label.key());
    const auto has = [&](const std::string& variable) { return result.labels.contains(variable); };
    if (std::ranges::all_of(variables, has)) having.push_back(result);
  }
  if (having.empty()) {
    throw UsageError(fmt::format("--by: expected sweep variables of one model, of {}; found {}",
                                 known.empty() ? "which there are none" : fmt::format("{}", fmt::join(known, ", ")),
                                 fmt::join(variables, ",")));
  }
  return having;
}

std::vector<ResultGroup> group_by(const std::vector<ModelResult>& results, const std::vector<std::string>& variables,
                                  const std::string& metric) {
  std::map<std::vector<std::string>, std::vector<double>> samples;
  for (const ModelResult& result : with_variables(results, variables)) {
    std::vector<std::string> values;
    for (const std::string& variable : variables) values.push_back(text_of(result.labels[variable]));
    if (const auto value = result.metric(metric)) samples[values].push_back(*value);
  }
  std::vector<ResultGroup> groups;
  for (const auto& [values, numbers] : samples) groups.push_back(group_of(values, numbers));
  const bool greater = greater_wins(metric);
  std::stable_sort(groups.begin(), groups.end(), [&](const ResultGroup& a, const ResultGroup& b) {
    return rank_key(a.mean, greater) < rank_key(b.mean, greater);
  });
  return groups;
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace tutti::launch
