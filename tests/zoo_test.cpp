// The zoo: names, sizes, costs and numbers of whole networks against published ones and torchvision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/graph/layer_list.h"
#include "tests/graph_interpreter.h"
#include "tests/stored_tensors.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::Not;

Graph built(const std::string& layers, std::vector<int64_t> shape) {
  return build_layer_list(Json::parse(layers), {"x", std::move(shape)});
}

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  return names;
}

TEST(Zoo, LeNet5HasItsParameters) {
  const Graph graph = built(R"([{"lenet5": 10}])", {1, 28, 28});
  EXPECT_EQ(graph.parameter_count(), 61706);
  EXPECT_THAT(parameter_names(graph),
              testing::ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight", "fc1.bias",
                                   "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_EQ(built(R"([{"lenet5": {"classes": 10, "padding": 0}}])", {1, 32, 32}).parameter_count(), 61706);
}

TEST(Zoo, SmallResNetsHaveTheirParameters) {
  // The layers of He et al. 2015, section 4.2, counted by hand, and 2,752 in the 1x1 convolutions and norms of
  // shortcuts.
  EXPECT_EQ(built(R"([{"resnet8": 10}])", {3, 32, 32}).parameter_count(), 75290 + 2752);
  EXPECT_EQ(built(R"([{"resnet20": 10}])", {3, 32, 32}).parameter_count(), 269722 + 2752);
  EXPECT_EQ(built(R"([{"resnet56": 10}])", {3, 32, 32}).parameter_count(), 853018 + 2752);
}

TEST(Zoo, ResNet56HasItsDepth) {
  const Graph graph = built(R"([{"resnet56": 10}])", {3, 32, 32});
  int64_t depth = 0;
  for (const Node& node : graph.nodes) {
    const bool shortcut = node.label.find("downsample") != std::string::npos;
    if (!shortcut && (node.target == "aten::conv2d" || node.target == "aten::linear")) ++depth;
  }
  EXPECT_EQ(depth, 56);
  EXPECT_THAT(parameter_names(graph), Contains("layer3.8.conv2.weight"));
  EXPECT_THAT(parameter_names(graph), Contains("layer2.0.downsample.0.weight"));
  EXPECT_THAT(parameter_names(graph), Not(Contains("layer1.0.downsample.0.weight")));
}

TEST(Zoo, ResNetConvolutionsBeginByFanOut) {
  const Graph graph = built(R"([{"resnet8": 10}])", {3, 32, 32});
  const Parameter& first = graph.parameters.at(0);
  ASSERT_EQ(first.name, "conv1.weight");
  EXPECT_EQ(first.initialisation.kind, Initialisation::Kind::kNormal);
  EXPECT_DOUBLE_EQ(first.initialisation.high, std::sqrt(2.0 / (16 * 9)));
  const Parameter& last = graph.parameters.back();
  ASSERT_EQ(last.name, "fc.bias");
  EXPECT_DOUBLE_EQ(last.initialisation.high, 1 / std::sqrt(64.0));
}

/// torchvision's published parameter counts and billions of multiply-adds for 224 x 224 images.
TEST(Zoo, Vgg11HasTorchvisionsSizeAndCost) {
  const Graph plain = built(R"([{"vgg11": 1000}])", {3, 224, 224});
  EXPECT_EQ(plain.parameter_count(), 132863336);
  EXPECT_NEAR(plain.forward_flops_per_sample() / 2e9, 7.609, 0.0005);
  const Graph normed = built(R"([{"vgg11": {"classes": 1000, "batch_norm": true}}])", {3, 224, 224});
  EXPECT_EQ(normed.parameter_count(), 132868840);
}

TEST(Zoo, Vgg11BeginsAsTorchvisions) {
  for (const Parameter& parameter : built(R"([{"vgg11": 10}])", {3, 32, 32}).parameters) {
    const bool bias = parameter.name.ends_with(".bias");
    EXPECT_EQ(parameter.initialisation.kind, bias ? Initialisation::Kind::kConstant : Initialisation::Kind::kNormal)
        << parameter.name;
    EXPECT_EQ(parameter.initialisation.low, 0) << parameter.name;
    if (!bias && parameter.name.starts_with("classifier")) {
      EXPECT_EQ(parameter.initialisation.high, 0.01);
    }
    if (parameter.name == "features.3.weight") {
      EXPECT_DOUBLE_EQ(parameter.initialisation.high, std::sqrt(2.0 / (128 * 9)));
    }
  }
}

/// The values that tests/pytorch/make_zoo_oracles.py gives to parameters that would be too large to store.
at::Tensor formula_values(const Value& value, int64_t index) {
  at::Tensor tensor = at::empty(value.shape, at::kDouble);
  double* numbers = tensor.mutable_data_ptr<double>();
  const bool vector = value.shape.size() == 1;
  const int64_t fan_in = tensor.numel() / value.shape[0];
  const double scale = vector ? 0.1 : std::sqrt(4 / static_cast<double>(fan_in));
  const double offset = vector && value.name.ends_with(".weight") ? 1 : 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    numbers[i] = offset + scale * std::sin(1000 * std::sin(static_cast<double>(i + index)));
  }
  return tensor;
}

class ZooOracle : public testing::TestWithParam<std::string> {};

TEST_P(ZooOracle, ComputesTorchvisionsOutput) {
  const test::StoredTensors file(std::string(TUTTI_TEST_DATA "/zoo/") + GetParam() + ".safetensors");
  const Graph graph = build_layer_list(Json::parse(file.metadata.at("layers")),
                                       {"x", Json::parse(file.metadata.at("input_shape")).get<std::vector<int64_t>>()});
  EXPECT_EQ(Json(parameter_names(graph)), Json::parse(file.metadata.at("parameters")));
  std::vector<at::Tensor> values(graph.values.size());
  values[static_cast<size_t>(graph.inputs[0])] = file.at("input");
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const auto id = static_cast<size_t>(graph.parameters[i].value);
    values[id] = formula_values(graph.values[id], static_cast<int64_t>(i));
  }
  for (const Buffer& buffer : graph.buffers) {
    const bool counter = buffer.initial.scalar_type() == at::kLong;
    values[static_cast<size_t>(buffer.value)] = counter ? buffer.initial.clone() : buffer.initial.to(at::kDouble);
  }
  ASSERT_NO_FATAL_FAILURE(test::run_graph(graph, values));
  const at::Tensor& output = values[static_cast<size_t>(graph.outputs[0])];
  const at::Tensor& expected = file.at("output");
  ASSERT_EQ(output.sizes(), expected.sizes());
  EXPECT_LE(((output - expected).norm() / expected.norm()).item<double>(), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Networks, ZooOracle, testing::Values("vgg11", "vgg11_batch_norm", "resnet56"),
                         [](const auto& info) { return info.param; });

TEST(Zoo, EntryAmongOtherLayersHasItsIndexBeforeItsNames) {
  const Graph graph = built(R"(["relu", {"lenet5": 10}])", {1, 28, 28});
  EXPECT_THAT(parameter_names(graph), Contains("1.conv1.weight"));
  const Graph mlp = built(R"([{"mlp": {"widths": [5], "classes": 2}}, "tanh"])", {4});
  EXPECT_THAT(parameter_names(mlp), testing::ElementsAre("0.1.weight", "0.1.bias", "0.3.weight", "0.3.bias"));
}

}  // namespace
}  // namespace tutti::graph
