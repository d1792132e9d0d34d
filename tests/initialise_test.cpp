// First values of parameters: their distributions, and that they depend on seed, parameter and element alone.
#include "src/graph/initialise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/philox.h"
#include "src/graph/layer_list.h"

namespace tutti::graph {
namespace {

using Kind = Initialisation::Kind;

at::Tensor drawn(const Initialisation& initialisation, const std::vector<int64_t>& shape, uint64_t seed = 7,
                 int64_t index = 3, at::ScalarType type = at::kDouble) {
  at::Tensor tensor = at::full(shape, 99, type);
  initialise({0, "w", initialisation, std::nullopt, true}, index, seed, tensor);
  return tensor;
}

/// The greatest distance of the sample's distribution function from `expected` (Kolmogorov, Smirnov).
double distribution_distance(const at::Tensor& sample, const std::function<double(double)>& expected) {
  const at::Tensor sorted = std::get<0>(sample.flatten().sort());
  const double count = static_cast<double>(sorted.numel());
  double distance = 0;
  for (int64_t i = 0; i < sorted.numel(); ++i) {
    const double value = expected(sorted[i].item<double>());
    distance = std::max({distance, value - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - value});
  }
  return distance;
}

constexpr int64_t kSample = 20000;
/// Exceeded by a true sample with probability 1e-6: sqrt(ln(2 / p) / 2 / n).
const double kDistanceLimit = std::sqrt(std::log(2 / 1e-6) / 2 / kSample);

TEST(Initialise, UniformIsUniform) {
  const at::Tensor sample = drawn({Kind::kUniform, -0.25, 0.75}, {kSample});
  EXPECT_GE(sample.min().item<double>(), -0.25);
  EXPECT_LT(sample.max().item<double>(), 0.75);
  EXPECT_LT(distribution_distance(sample, [](double x) { return x + 0.25; }), kDistanceLimit);
}

TEST(Initialise, NormalIsNormal) {
  const at::Tensor sample = drawn({Kind::kNormal, 2, 3}, {kSample});
  EXPECT_LT(distribution_distance(sample, [](double x) { return std::erfc(-(x - 2) / 3 / std::sqrt(2)) / 2; }),
            kDistanceLimit);
}

TEST(Initialise, NeighboursAreUncorrelated) {
  const at::Tensor sample = drawn({Kind::kNormal, 0, 1}, {kSample});
  for (int64_t lag : {1, 2, 3}) {
    const double mean = (sample.slice(0, lag) * sample.slice(0, 0, kSample - lag)).mean().item<double>();
    EXPECT_LT(std::abs(mean), 5 / std::sqrt(kSample)) << "lag " << lag;
  }
}

TEST(Initialise, ConstantFills) {
  EXPECT_TRUE(drawn({Kind::kConstant, 0.5}, {3, 2}).equal(at::full({3, 2}, 0.5, at::kDouble)));
}

TEST(Initialise, GivenValuesOverrideTheDistribution) {
  Parameter parameter{0, "w", {Kind::kNormal, 0, 1}, at::tensor({1.5f, 2.5f}), true};
  at::Tensor tensor = at::zeros({2}, at::kDouble);
  initialise(parameter, 0, 0, tensor);
  EXPECT_TRUE(tensor.equal(at::tensor({1.5, 2.5}, at::kDouble)));
  at::Tensor other = at::zeros({3});
  EXPECT_THROW(initialise(parameter, 0, 0, other), GraphError);
}

TEST(Initialise, ZeroRowIsZeroAndLeavesTheOthers) {
  Initialisation initialisation{Kind::kNormal, 0, 1};
  const at::Tensor whole = drawn(initialisation, {4, 3});
  initialisation.zero_row = 2;
  const at::Tensor padded = drawn(initialisation, {4, 3});
  EXPECT_EQ(padded[2].abs().sum().item<double>(), 0);
  for (int64_t row : {0, 1, 3}) EXPECT_TRUE(padded[row].equal(whole[row])) << "row " << row;
}

TEST(Initialise, ElementDependsOnSeedIndexAndElementAlone) {
  const Initialisation normal{Kind::kNormal, 0, 1};
  const at::Tensor values = drawn(normal, {101});
  EXPECT_TRUE(values.equal(drawn(normal, {101})));
  EXPECT_TRUE(values.slice(0, 0, 33).equal(drawn(normal, {33}))) << "the size changes values";
  EXPECT_TRUE(values.slice(0, 0, 100).equal(drawn(normal, {10, 10}).flatten())) << "the shape changes values";
  EXPECT_TRUE(values.to(at::kFloat).equal(drawn(normal, {101}, 7, 3, at::kFloat))) << "float is not double, rounded";
  EXPECT_EQ((values == drawn(normal, {101}, 8)).sum().item<int64_t>(), 0) << "equal values for another seed";
  EXPECT_EQ((values == drawn(normal, {101}, 7, 4)).sum().item<int64_t>(), 0) << "equal values for another parameter";
}

TEST(Initialise, PacksPhiloxCountersAsDocumented) {
  const data::RandomKey key = data::RandomKey::of(7, "init");
  const data::PhiloxWords words = data::philox(key, {2, 0, 3, 0});  // elements 4 and 5 of parameter 3
  const at::Tensor values = drawn({Kind::kUniform, 0, 1}, {6});
  EXPECT_EQ(values[4].item<double>(), data::uniform_double(words[0], words[1]));
  EXPECT_EQ(values[5].item<double>(), data::uniform_double(words[2], words[3]));
}

/// What PyTorch's layers begin with: 1 / sqrt(fan in) for weight and bias.
struct Bound {
  std::string name;
  std::string layers;
  std::vector<int64_t> shape;
  double fan_in;
};

class DefaultInitialisation : public testing::TestWithParam<Bound> {};

TEST_P(DefaultInitialisation, IsUniformByFanIn) {
  const Graph graph = build_layer_list(nlohmann::json::parse(GetParam().layers), {"x", GetParam().shape});
  ASSERT_EQ(graph.parameters.size(), 2u);
  for (const Parameter& parameter : graph.parameters) {
    EXPECT_EQ(parameter.initialisation.kind, Kind::kUniform) << parameter.name;
    EXPECT_DOUBLE_EQ(parameter.initialisation.high, 1 / std::sqrt(GetParam().fan_in)) << parameter.name;
    EXPECT_DOUBLE_EQ(parameter.initialisation.low, -1 / std::sqrt(GetParam().fan_in)) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, DefaultInitialisation,
    testing::Values(Bound{"Linear", R"([{"linear": 5}])", {7}, 7},
                    Bound{"Conv1d", R"([{"conv1d": {"out": 5, "kernel": 3}}])", {2, 9}, 6},
                    Bound{
                        "Conv2dInGroups", R"([{"conv2d": {"out": 6, "kernel": [3, 2], "groups": 2}}])", {4, 5, 5}, 12},
                    Bound{"Conv3d", R"([{"conv3d": {"out": 2, "kernel": 2}}])", {3, 4, 4, 4}, 24},
                    Bound{"ConvTranspose2dInGroups",
                          R"([{"conv_transpose2d": {"out": 6, "kernel": [2, 3], "groups": 2}}])",
                          {4, 5, 5},
                          18}),
    [](const auto& info) { return info.param.name; });

TEST(DefaultInitialisation, OfNormsIsOneAndZeroWithUnitStatistics) {
  for (const char* layers : {R"(["batch_norm"])", R"([{"layer_norm": 2}])", R"([{"group_norm": 2}])"}) {
    const Graph graph = build_layer_list(nlohmann::json::parse(layers), {"x", {4, 3}});
    ASSERT_EQ(graph.parameters.size(), 2u) << layers;
    for (const Parameter& parameter : graph.parameters) {
      EXPECT_EQ(parameter.initialisation.kind, Kind::kConstant);
      EXPECT_EQ(parameter.initialisation.low, parameter.name == "0.weight" ? 1 : 0) << layers << parameter.name;
    }
  }
  const Graph graph = build_layer_list({"batch_norm"}, {"x", {4, 3}});
  ASSERT_EQ(graph.buffers.size(), 3u);
  EXPECT_TRUE(graph.buffers[0].initial.equal(at::zeros({4})));
  EXPECT_TRUE(graph.buffers[1].initial.equal(at::ones({4})));
  EXPECT_EQ(graph.buffers[2].initial.item<int64_t>(), 0);
}

TEST(DefaultInitialisation, OfEmbeddingIsStandardNormalWithAZeroPaddingRow) {
  const Graph graph = build_layer_list(
      nlohmann::json::parse(R"([{"embedding": {"count": 5, "dim": 2, "padding_idx": 3}}])"), {"x", {4}, at::kLong});
  const Initialisation& initialisation = graph.parameters.at(0).initialisation;
  EXPECT_EQ(initialisation.kind, Kind::kNormal);
  EXPECT_EQ(initialisation.low, 0);
  EXPECT_EQ(initialisation.high, 1);
  EXPECT_EQ(initialisation.zero_row, 3);
}

}  // namespace
}  // namespace tutti::graph
