// The layer list: shapes and numbers of every layer against PyTorch, and the messages of bad lists.
#include "src/graph/layer_list.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "src/graph/layer_options.h"
#include "tests/graph_interpreter.h"
#include "tests/stored_tensors.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> oracle_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(TUTTI_TEST_DATA "/graph")) {
    if (file.path().extension() == ".safetensors") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

/// A layer list with what PyTorch made of it (tests/pytorch/make_layer_oracles.py).
struct Oracle {
  explicit Oracle(const std::string& name)
      : file(std::filesystem::path(TUTTI_TEST_DATA "/graph") / (name + ".safetensors")),
        layers(Json::parse(file.metadata.at("layers"))),
        input{"x", Json::parse(file.metadata.at("input_shape")).get<std::vector<int64_t>>(),
              file.at("input").scalar_type() == at::kLong ? at::kLong : at::kFloat} {}

  /// Names of the tensors that begin so, the beginning cut off.
  std::set<std::string> names(const std::string& beginning) const {
    std::set<std::string> found;
    for (const train::NamedTensor& tensor : file.tensors) {
      if (tensor.name.starts_with(beginning)) found.insert(tensor.name.substr(beginning.size()));
    }
    return found;
  }

  test::StoredTensors file;
  Json layers;
  InputShape input;
};

/// Values for every input, parameter and buffer: those of PyTorch, in float64.
std::vector<at::Tensor> oracle_values(const Graph& graph, const Oracle& oracle) {
  std::vector<at::Tensor> values(graph.values.size());
  values[static_cast<size_t>(graph.inputs[0])] = oracle.file.at("input");
  for (const Parameter& parameter : graph.parameters) {
    values[static_cast<size_t>(parameter.value)] = oracle.file.at("parameter/" + parameter.name);
  }
  for (const Buffer& buffer : graph.buffers) {
    const at::Tensor initial = buffer.initial.clone();
    values[static_cast<size_t>(buffer.value)] = initial.is_floating_point() ? initial.to(at::kDouble) : initial;
  }
  return values;
}

double distance(const at::Tensor& found, const at::Tensor& expected) {
  if (expected.scalar_type() == at::kLong) return found.equal(expected) ? 0 : 1;
  return ((found - expected).norm() / (1e-300 + expected.norm())).item<double>();
}

class LayerOracle : public testing::TestWithParam<std::string> {};

TEST_P(LayerOracle, GraphHasPyTorchsStateDict) {
  const Oracle oracle(GetParam());
  const Graph graph = build_layer_list(oracle.layers, oracle.input);
  std::set<std::string> parameters;
  for (const Parameter& parameter : graph.parameters) {
    parameters.insert(parameter.name);
    EXPECT_EQ(oracle.file.at("parameter/" + parameter.name).sizes(),
              at::IntArrayRef(graph.values.at(static_cast<size_t>(parameter.value)).shape))
        << parameter.name;
  }
  std::set<std::string> buffers;
  for (const Buffer& buffer : graph.buffers) buffers.insert(buffer.name);
  EXPECT_EQ(parameters, oracle.names("parameter/"));
  EXPECT_EQ(buffers, oracle.names("buffer_after/"));
}

TEST_P(LayerOracle, NodesComputePyTorchsOutputAndBuffers) {
  const Oracle oracle(GetParam());
  const Graph graph = build_layer_list(oracle.layers, oracle.input);
  std::vector<at::Tensor> values = oracle_values(graph, oracle);
  ASSERT_NO_FATAL_FAILURE(test::run_graph(graph, values));
  const at::Tensor output = values.at(static_cast<size_t>(graph.outputs.at(0)));
  ASSERT_EQ(output.sizes(), oracle.file.at("output").sizes());
  EXPECT_LE(distance(output, oracle.file.at("output")), 1e-13);
  for (const Buffer& buffer : graph.buffers) {
    EXPECT_LE(distance(values.at(static_cast<size_t>(buffer.value)), oracle.file.at("buffer_after/" + buffer.name)),
              1e-13)
        << buffer.name;
  }
}

TEST_P(LayerOracle, InferredShapesAreTheNodesShapesAtEveryBatch) {
  const Oracle oracle(GetParam());
  const Graph graph = build_layer_list(oracle.layers, oracle.input);
  for (int64_t batch : {2, 1, 5}) {
    std::vector<at::Tensor> values = oracle_values(graph, oracle);
    std::vector<int64_t> shape = {batch};
    shape.insert(shape.end(), oracle.input.shape.begin(), oracle.input.shape.end());
    at::Tensor& input = values[static_cast<size_t>(graph.inputs[0])];
    input = at::zeros(shape, input.options());
    ASSERT_NO_FATAL_FAILURE(test::run_graph(graph, values));
    for (size_t id = 0; id < values.size(); ++id) {
      std::vector<int64_t> expected = graph.values[id].shape;
      if (!expected.empty() && expected[0] == kBatch) expected[0] = batch;
      EXPECT_EQ(values[id].sizes(), at::IntArrayRef(expected)) << graph.values[id].name << ", batch " << batch;
      EXPECT_EQ(values[id].scalar_type() == at::kLong, graph.values[id].type == at::kLong) << graph.values[id].name;
    }
  }
}

TEST_P(LayerOracle, SignatureIsEqualForEqualListsAndReadsNoNames) {
  const Oracle oracle(GetParam());
  Graph graph = build_layer_list(oracle.layers, oracle.input);
  const std::string signature = graph.signature();
  for (Value& value : graph.values) value.name = "other";
  for (Node& node : graph.nodes) node.label = "other";
  for (Parameter& parameter : graph.parameters) parameter.name = "other";
  EXPECT_EQ(graph.signature(), signature);
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerOracle, testing::ValuesIn(oracle_names()),
                         [](const auto& info) { return info.param; });

TEST(LayerOracles, CoverEveryDeclaredLayer) {
  std::set<std::string> missing;
  for (const LayerDeclaration& declaration : layer_declarations()) missing.insert("\"" + declaration.name + "\"");
  for (const std::string& name : oracle_names()) {
    const std::string layers = Oracle(name).layers.dump();
    std::erase_if(missing, [&](const std::string& layer) { return layers.find(layer) != std::string::npos; });
  }
  // resnet56 is resnet20 with more blocks, vgg11 is too large to store: zoo_test covers both.
  EXPECT_THAT(missing, testing::UnorderedElementsAre("\"resnet56\"", "\"vgg11\""));
}

TEST(LayerDeclarations, HaveUniqueNamesAndKnownTypes) {
  const std::vector<std::string> types = option_types();
  std::set<std::string> names;
  for (const LayerDeclaration& declaration : layer_declarations()) {
    EXPECT_TRUE(names.insert(declaration.name).second) << declaration.name << " is declared twice";
    EXPECT_FALSE(declaration.meaning.empty()) << declaration.name;
    std::set<std::string> keys;
    for (const LayerKey& key : declaration.keys) {
      EXPECT_TRUE(keys.insert(key.name).second) << declaration.name << "." << key.name << " is declared twice";
      EXPECT_FALSE(key.meaning.empty()) << declaration.name << "." << key.name;
      EXPECT_THAT(types, testing::Contains(key.type)) << declaration.name << "." << key.name;
    }
    if (!declaration.shorthand.empty()) {
      EXPECT_TRUE(keys.contains(declaration.shorthand)) << declaration.name;
    }
  }
}

TEST(LayerList, RandomNumbersOfDropoutAreSwitchedOn) {
  const Graph graph = build_layer_list({{{"dropout", 0.25}}}, {"x", {4}});
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].target, "aten::dropout");
  EXPECT_EQ(graph.nodes[0].arguments[1].constant.toDouble(), 0.25);
  EXPECT_TRUE(graph.nodes[0].arguments[2].constant.toBool());
}

TEST(LayerList, DifferentSettingsGiveDifferentSignatures) {
  const InputShape input{"x", {4}};
  const auto signature = [&](const char* layers) { return build_layer_list(Json::parse(layers), input).signature(); };
  const std::vector<std::string> signatures = {signature(R"([{"dropout": 0.25}])"),
                                               signature(R"([{"dropout": 0.5}])"),
                                               signature(R"(["relu"])"),
                                               signature(R"([{"linear": 4}])"),
                                               signature(R"([{"linear": 5}])"),
                                               signature(R"([{"linear": {"out": 4, "bias": false}}])")};
  EXPECT_EQ(std::set<std::string>(signatures.begin(), signatures.end()).size(), signatures.size());
}

struct BadList {
  std::string name;
  std::string layers;
  std::vector<int64_t> shape;
  std::string path;
  std::vector<std::string> parts;  ///< of the message
};

class BadLayerList : public testing::TestWithParam<BadList> {};

TEST_P(BadLayerList, IsRefusedByName) {
  const BadList& bad = GetParam();
  try {
    build_layer_list(Json::parse(bad.layers), {"x", bad.shape});
    FAIL() << "no error for " << bad.layers;
  } catch (const LayerError& error) {
    EXPECT_EQ(error.path, bad.path) << error.what();
    for (const std::string& part : bad.parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

const BadList kBadLists[] = {
    {"UnknownLayer", R"([{"lineer": 3}])", {4}, "0", {"layers.0", "`lineer`", "nearest is `linear`"}},
    {"UnknownKey",
     R"(["relu", {"conv2d": {"out": 3, "kernal": 3}}])",
     {1, 8, 8},
     "1",
     {"layers.1 conv2d", "unknown key `kernal`", "nearest is `kernel`"}},
    {"KeyOfKeylessLayer", R"([{"relu": {"slope": 3}}])", {4}, "0", {"layers.0 relu", "`slope`", "no keys"}},
    {"MissingKey", R"([{"conv2d": {"out": 3}}])", {1, 8, 8}, "0", {"`kernel` is missing", "size of the window"}},
    {"WrongType", R"([{"linear": "ten"}])", {4}, "0", {"layers.0 linear", "`out`", "int >= 1", "\"ten\""}},
    {"FractionalSize", R"([{"linear": 2.5}])", {4}, "0", {"`out`", "int >= 1", "2.5"}},
    {"ZeroSize", R"([{"linear": 0}])", {4}, "0", {"`out`", "int >= 1", "found 0"}},
    {"HugeSize", R"([{"linear": 99999999999}])", {4}, "0", {"`out`", "99999999999"}},
    {"HugeTensor", R"([{"linear": 2147483647}])", {2147483647}, "0", {"2^50"}},
    {"ProbabilityOfOne", R"([{"dropout": 1}])", {4}, "0", {"`p`", "[0, 1)", "found 1"}},
    {"ListTooLong",
     R"([{"max_pool2d": [2, 2, 2]}])",
     {1, 8, 8},
     "0",
     {"layers.0 max_pool2d", "`kernel`", "list of 2", "[2,2,2]"}},
    {"TwoLayersInOneMap", R"([{"relu": null, "tanh": null}])", {4}, "0", {"layers.0", "one name", "one level deeper"}},
    {"NotALayer", R"([3])", {4}, "0", {"layers.0", "expected a layer", "found 3"}},
    {"NotAList", R"({"linear": 3})", {4}, "", {"layers", "a list"}},
    {"EmptyList", R"([])", {4}, "", {"at least one layer"}},
    {"LinearOnImage",
     R"([{"conv2d": {"out": 16, "kernel": 3}}, "relu", {"max_pool2d": 2}, {"dropout": 0.5}, {"linear": 10}])",
     {1, 16, 16},
     "4",
     {"layers.4 linear: expected an input of 1 dimension per sample ([features]), found [16, 7, 7] from layers.3 "
      "dropout; "
      "put `flatten` before it"}},
    {"ImageWithoutChannel",
     R"([{"conv2d": {"out": 16, "kernel": 3}}])",
     {28, 28},
     "0",
     {"3 dimensions", "[channels, height, width]", "[28, 28] from the input x", "`reshape: [1, 28, 28]`"}},
    {"WindowTooLarge",
     R"([{"max_pool2d": 4}, {"conv2d": {"out": 3, "kernel": 5}}])",
     {1, 8, 8},
     "1",
     {"layers.1 conv2d", "at least 5", "[1, 2, 2] from layers.0 max_pool2d"}},
    {"GroupsDoNotDivide",
     R"([{"conv2d": {"out": 3, "kernel": 1, "groups": 2}}])",
     {4, 8, 8},
     "0",
     {"`groups`", "(4)", "(3)", "found 2"}},
    {"SameWithStride",
     R"([{"conv2d": {"out": 3, "kernel": 3, "stride": 2, "padding": "same"}}])",
     {4, 8, 8},
     "0",
     {"`padding: same` needs stride 1"}},
    {"PaddingBeyondHalf",
     R"([{"max_pool1d": {"kernel": 3, "padding": 2}}])",
     {4, 8},
     "0",
     {"`padding`", "half of the kernel (3)", "found 2"}},
    {"OutputPaddingTooLarge",
     R"([{"conv_transpose2d": {"out": 3, "kernel": 3, "stride": 2, "output_padding": 2}}])",
     {4, 8, 8},
     "0",
     {"`output_padding` below", "found 2"}},
    {"GroupNormOfOddChannels", R"([{"group_norm": 2}])", {3, 4}, "0", {"`groups` (2)", "[3, 4]"}},
    {"LayerNormOverTooMany", R"([{"layer_norm": 3}])", {3, 4}, "0", {"at least 3", "[3, 4]"}},
    {"BatchNorm2dOfVector", R"([{"batch_norm2d": null}])", {6}, "0", {"[channels, height, width]", "[6]"}},
    {"BatchNormOfNumber", R"(["batch_norm"])", {}, "0", {"1 to 4 dimensions", "found []"}},
    {"EmbeddingOfFloats",
     R"([{"embedding": {"count": 3, "dim": 2}}])",
     {6},
     "0",
     {"expected indices", "[6] from the input x"}},
    {"FlattenOfBatch", R"([{"flatten": 0}])", {2, 3}, "0", {"1 <= start_dim", "found start_dim 0"}},
    {"ReshapeDoesNotFit", R"([{"reshape": [4, 4]}])", {15}, "0", {"[4, 4]", "[15]", "15 elements"}},
    {"ReshapeTwoOpen", R"([{"reshape": [-1, -1]}])", {16}, "0", {"at most one of them -1"}},
    {"ResidualShapes",
     R"(["relu", {"residual": ["relu", {"linear": 5}]}])",
     {4},
     "1",
     {"layers.1 residual", "[5] from layers.1.residual.1 linear", "[4] from layers.0 relu", "`shortcut`"}},
    {"FaultInResidual", R"([{"residual": [{"linear": -1}]}])", {4}, "0.residual.0", {"layers.0.residual.0 linear"}},
    {"FaultInResidualBody", R"([{"residual": {"body": ["rely"]}}])", {4}, "0.residual.body.0", {"`relu`"}},
    {"FaultInBranch",
     R"(["relu", {"branches": {"paths": [[], ["relu", {"linear": 0}]]}}])",
     {4},
     "1.branches.paths.1.1",
     {"layers.1.branches.paths.1.1 linear"}},
    {"BranchShapes",
     R"([{"branches": {"paths": [[], [{"linear": 3}]], "join": "add"}}])",
     {4},
     "0",
     {"layers.0 branches", "[4] (path 0)", "[3] (path 1)"}},
    {"BranchConcatDim", R"([{"branches": {"paths": [[], []], "dim": 2}}])", {4}, "0", {"`dim`", "1 to 1", "found 2"}},
    {"BranchNotALayerList", R"([{"branches": ["relu"]}])", {4}, "0", {"list of lists of layers"}},
    {"ZooTooSmall", R"([{"lenet5": 10}])", {1, 6, 6}, "0", {"layers.0 lenet5.conv2 conv2d", "at least 5"}},
    {"MlpActivation",
     R"([{"mlp": {"widths": [3], "classes": 2, "activation": "linear"}}])",
     {4},
     "0",
     {"`activation`", "relu", "`linear`"}},
};

INSTANTIATE_TEST_SUITE_P(Lists, BadLayerList, testing::ValuesIn(kBadLists),
                         [](const auto& info) { return info.param.name; });

TEST(LayerList, RefusesFloatLayersOnIndices) {
  try {
    build_layer_list(Json::parse(R"(["flatten", {"linear": 3}])"), {"x", {4}, at::kLong});
    FAIL() << "no error";
  } catch (const LayerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("found indices [4] from layers.0 flatten; put `embedding` before it"));
  }
}

}  // namespace
}  // namespace tutti::graph
