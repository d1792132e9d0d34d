#include "launch/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "launch/command.h"
#include "src/program/metric.h"

namespace tutti::launch {

namespace {

constexpr const char* kPartOrder[] = {"train", "validation", "test"};

bool is_loss(const std::string& full_name) { return full_name.ends_with(".loss"); }

bool greater_wins(const std::string& full_name) {
  return !is_loss(full_name) &&
         program::greater_is_better(program::metric_named(full_name.substr(full_name.find('.') + 1)));
}

/// Smaller is better; absent values come last.
double rank_key(std::optional<double> value, bool greater_is_better) {
  if (!value) return std::numeric_limits<double>::infinity();
  return greater_is_better ? -*value : *value;
}

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

std::optional<double> ModelResult::metric(const std::string& full_name) const {
  const size_t dot = full_name.find('.');
  const auto part = metrics.find(full_name.substr(0, dot));
  if (dot == std::string::npos || part == metrics.end()) return std::nullopt;
  const auto value = part->find(full_name.substr(dot + 1));
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
  const std::vector<std::string> names = metric_names(results);
  const auto known = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!wanted.empty()) {
    for (const char* part : {"", "validation.", "test.", "train."}) {
      if (known(part + wanted)) return part + wanted;
    }
    throw UsageError(fmt::format("--metric: expected one of {}, found {}", fmt::join(names, ", "), wanted));
  }
  for (const char* part : {"validation.", "test.", "train."}) {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const std::string& name) { return name.starts_with(part) && !is_loss(name); });
    if (found != names.end()) return *found;
    if (known(part + std::string("loss"))) return part + std::string("loss");
  }
  return "";
}

void sort_best_first(std::vector<ModelResult>& results, const std::string& full_name) {
  const bool greater = !full_name.empty() && greater_wins(full_name);
  std::stable_sort(results.begin(), results.end(), [&](const ModelResult& a, const ModelResult& b) {
    return rank_key(a.metric(full_name), greater) < rank_key(b.metric(full_name), greater);
  });
}

std::vector<ResultGroup> group_by(const std::vector<ModelResult>& results, const std::vector<std::string>& variables,
                                  const std::string& full_name) {
  std::map<std::vector<std::string>, std::vector<double>> samples;
  std::set<std::string> known;
  bool any_has_all = false;
  for (const ModelResult& result : results) {
    for (const auto& label : result.labels.items()) known.insert(label.key());
    std::vector<std::string> values;
    for (const std::string& variable : variables) {
      if (result.labels.contains(variable)) values.push_back(text_of(result.labels[variable]));
    }
    if (values.size() != variables.size()) continue;
    any_has_all = true;
    if (const auto value = result.metric(full_name)) samples[values].push_back(*value);
  }
  if (!any_has_all) {
    throw UsageError(fmt::format("--by: expected sweep variables of one model, of {}; found {}",
                                 known.empty() ? "which there are none" : fmt::format("{}", fmt::join(known, ", ")),
                                 fmt::join(variables, ",")));
  }
  std::vector<ResultGroup> groups;
  for (const auto& [values, numbers] : samples) groups.push_back(group_of(values, numbers));
  const bool greater = greater_wins(full_name);
  std::stable_sort(groups.begin(), groups.end(), [&](const ResultGroup& a, const ResultGroup& b) {
    return rank_key(a.mean, greater) < rank_key(b.mean, greater);
  });
  return groups;
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace tutti::launch
