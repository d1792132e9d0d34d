// Parameter groups: which of a model's parameters train, how fast, and with how much decay.
#include "src/train/parameter_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "src/graph/nearest_name.h"

namespace tutti::train {
namespace {

constexpr std::array<std::string_view, 9> kNormTargets = {
    "aten::batch_norm",        "aten::native_batch_norm", "aten::_native_batch_norm_legit",
    "aten::layer_norm",        "aten::native_layer_norm", "aten::group_norm",
    "aten::native_group_norm", "aten::instance_norm",     "aten::rms_norm"};

/// The values that normalisations read.
std::set<graph::ValueId> values_of_norms(const graph::Graph& graph) {
  std::set<graph::ValueId> values;
  for (const graph::Node& node : graph.nodes) {
    if (std::ranges::find(kNormTargets, node.target) == kNormTargets.end()) continue;
    for (const graph::Argument& argument : node.arguments) values.insert(argument.ids.begin(), argument.ids.end());
  }
  return values;
}

bool is_bias(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);  // npos + 1 is 0
  return last == "bias" || last.starts_with("bias_") || last.ends_with("_bias");
}

/// The positions in graph.parameters that a pattern matches.
std::vector<size_t> matches(const graph::Graph& graph, const std::string& pattern) {
  const std::set<graph::ValueId> norms = pattern == "norms" ? values_of_norms(graph) : std::set<graph::ValueId>();
  std::vector<size_t> found;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const graph::Parameter& parameter = graph.parameters[i];
    const bool matched = pattern == "norms"    ? norms.contains(parameter.value)
                         : pattern == "biases" ? is_bias(parameter.name)
                                               : fnmatch(pattern.c_str(), parameter.name.c_str(), 0) == 0;
    if (matched) found.push_back(i);
  }
  return found;
}

[[noreturn]] void fail_without_match(const graph::Graph& graph, const std::string& pattern) {
  constexpr size_t kShown = 3;
  std::vector<std::string> names;
  for (const graph::Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  std::vector<std::string> nearest;
  while (nearest.size() < kShown && !names.empty()) {
    nearest.push_back(graph::nearest_name(pattern, names));
    std::erase(names, nearest.back());
  }
  throw std::invalid_argument(
      fmt::format("parameter pattern '{}': expected it to match some of the model's {} parameters, found none; the "
                  "nearest names are {} (a pattern may also be 'norms' or 'biases')",
                  pattern, graph.parameters.size(), fmt::join(nearest, ", ")));
}

}  // namespace

std::vector<SegmentRule> resolve(const graph::Graph& graph, const std::vector<ParameterRule>& rules,
                                 const OptimizerSpec& optimizer) {
  std::vector<const ParameterRule*> chosen(graph.parameters.size(), nullptr);
  for (const ParameterRule& rule : rules) {
    const std::vector<size_t> matched = matches(graph, rule.pattern);
    if (matched.empty()) fail_without_match(graph, rule.pattern);
    for (const size_t i : matched) {
      if (chosen[i] == nullptr) chosen[i] = &rule;
    }
  }
  std::vector<SegmentRule> resolved;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const ParameterRule rule = chosen[i] != nullptr ? *chosen[i] : ParameterRule{};
    resolved.push_back({.trainable = graph.parameters[i].trainable && !rule.frozen,
                        .lr_factor = rule.lr_factor.value_or(1),
                        .weight_decay = rule.weight_decay.value_or(optimizer.weight_decay)});
  }
  return resolved;
}

}  // namespace tutti::train
