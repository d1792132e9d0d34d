// Parameter groups: patterns, the words `norms` and `biases`, frozen parameters, and patterns that match nothing.
#include "src/train/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "src/graph/layer_list.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

/// Parameters: 0.weight 0.bias (conv), 1.weight 1.bias (batch norm), 3.* (group norm), 5.* (linear), 6.* (layer norm).
graph::Graph network() {
  const auto layers = nlohmann::json::parse(
      R"([{"conv2d": {"out": 4, "kernel": 3}}, "batch_norm", "relu", {"group_norm": 2}, "flatten",
          {"linear": 5}, "layer_norm"])");
  return graph::build_layer_list(layers, {.shape = {2, 6, 6}});
}

std::map<std::string, SegmentRule> resolved(const std::vector<ParameterRule>& rules, const graph::Graph& graph,
                                            const OptimizerSpec& optimizer = {.weight_decay = 0.1}) {
  const std::vector<SegmentRule> found = resolve(graph, rules, optimizer);
  EXPECT_EQ(found.size(), graph.parameters.size());
  std::map<std::string, SegmentRule> by_name;
  for (size_t i = 0; i < found.size(); ++i) by_name[graph.parameters[i].name] = found[i];
  return by_name;
}

/// The names of parameters without decay.
std::vector<std::string> without_decay(const std::vector<ParameterRule>& rules) {
  std::vector<std::string> names;
  for (const auto& [name, rule] : resolved(rules, network())) {
    if (rule.weight_decay == 0) names.push_back(name);
  }
  return names;
}

TEST(ParameterGroups, WithoutRulesHaveTheOptimizersSettings) {
  for (const auto& [name, rule] : resolved({}, network())) {
    EXPECT_EQ(rule, (SegmentRule{.trainable = true, .lr_factor = 1, .weight_decay = 0.1})) << name;
  }
}

TEST(ParameterGroups, KnowNormsAndBiases) {
  using testing::ElementsAre;
  EXPECT_THAT(without_decay({{.pattern = "norms", .weight_decay = 0}}),
              ElementsAre("1.bias", "1.weight", "3.bias", "3.weight", "6.bias", "6.weight"));
  EXPECT_THAT(without_decay({{.pattern = "biases", .weight_decay = 0}}),
              ElementsAre("0.bias", "1.bias", "3.bias", "5.bias", "6.bias"));
}

TEST(ParameterGroups, MatchShellPatternsOverTheWholeName) {
  using testing::ElementsAre;
  EXPECT_THAT(without_decay({{.pattern = "[05].*", .weight_decay = 0}}),
              ElementsAre("0.bias", "0.weight", "5.bias", "5.weight"));
  EXPECT_THAT(without_decay({{.pattern = "?.weight", .weight_decay = 0}}),
              ElementsAre("0.weight", "1.weight", "3.weight", "5.weight", "6.weight"));
}

TEST(ParameterGroups, FollowTheFirstRuleThatMatches) {
  const auto found =
      resolved({{.pattern = "5.*", .lr_factor = 2}, {.pattern = "biases", .weight_decay = 0}}, network());
  EXPECT_EQ(found.at("5.bias"), (SegmentRule{.lr_factor = 2, .weight_decay = 0.1}));
  EXPECT_EQ(found.at("0.bias"), (SegmentRule{.lr_factor = 1, .weight_decay = 0}));
}

TEST(ParameterGroups, FreezeByRuleAndByGraph) {
  graph::Graph graph = network();
  graph.parameters.back().trainable = false;
  const auto found = resolved({{.pattern = "0.*", .frozen = true}}, graph);
  EXPECT_FALSE(found.at("0.weight").trainable);
  EXPECT_FALSE(found.at("0.bias").trainable);
  EXPECT_TRUE(found.at("1.weight").trainable);
  EXPECT_FALSE(found.at(graph.parameters.back().name).trainable);
}

TEST(ParameterGroups, RefuseARuleThatMatchesNothing) {
  const auto message = [](const std::string& pattern, const graph::Graph& graph) -> std::string {
    try {
      resolve(graph, {{.pattern = pattern}}, {});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("5.wieght", network()), HasSubstr("nearest names are 5.weight"));
  EXPECT_THAT(message("5.wieght", network()), HasSubstr("'5.wieght'"));
  EXPECT_THAT(message("weight", network()), HasSubstr("10 parameters"));
  const auto plain = graph::build_layer_list({{{"linear", 3}}}, {.shape = {2}});
  EXPECT_THAT(message("norms", plain), HasSubstr("found none"));
}

}  // namespace
}  // namespace tutti::train
