// The graph: what its signature tells apart, its size and its cost.
#include "src/graph/graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "src/graph/graph_builder.h"
#include "src/graph/layer_list.h"
#include "src/graph/nearest_name.h"

namespace tutti::graph {
namespace {

/// y = clamp(x [batch, 3] times w [3, 4], least 0.5), with a constant and a buffer beside.
Graph small_graph() {
  GraphBuilder builder;
  const ValueId x = builder.add_input("x", {3}, at::kFloat);
  const ValueId w = builder.add_parameter("w", {3, 4}, {});
  builder.add_buffer("steps", at::zeros({2}));
  const ValueId product =
      builder.add_node({"aten::matmul", {Argument::of(x), Argument::of(w)}, {kBatch, 4}}, "product");
  const ValueId clamped = builder.add_node(
      {"aten::clamp", {Argument::of(product), Argument::fixed(0.5), Argument::none()}, {kBatch, 4}}, "clamp");
  Graph graph = builder.finish(clamped);
  graph.values.push_back({ValueKind::kConstant, "c", at::kFloat, {2}});
  graph.constants.push_back({5, at::tensor({1.0f, 2.0f})});
  return graph;
}

struct Change {
  std::string name;
  std::function<void(Graph&)> apply;
};

class SignatureChange : public testing::TestWithParam<Change> {};

TEST_P(SignatureChange, ChangesTheSignature) {
  Graph graph = small_graph();
  GetParam().apply(graph);
  EXPECT_NE(graph.signature(), small_graph().signature());
}

INSTANTIATE_TEST_SUITE_P(
    Graph, SignatureChange,
    testing::Values(
        Change{"Shape", [](Graph& graph) { graph.values[0].shape[1] = 5; }},
        Change{"Type", [](Graph& graph) { graph.values[0].type = at::kLong; }},
        Change{"Kind", [](Graph& graph) { graph.values[1].kind = ValueKind::kBuffer; }},
        Change{"Operator", [](Graph& graph) { graph.nodes[1].target = "aten::clamp_min"; }},
        Change{"Overload", [](Graph& graph) { graph.nodes[1].overload = "Tensor"; }},
        Change{"Number", [](Graph& graph) { graph.nodes[1].arguments[1] = Argument::fixed(0.5000000000000001); }},
        Change{"TypeOfNumber", [](Graph& graph) { graph.nodes[1].arguments[1] = Argument::fixed(1); }},
        Change{"NoneBecomesNumber", [](Graph& graph) { graph.nodes[1].arguments[2] = Argument::fixed(1.0); }},
        Change{"Operands", [](Graph& graph) { graph.nodes[0].arguments[1] = Argument::of(0); }},
        Change{"ListOfOneForOne", [](Graph& graph) { graph.nodes[0].arguments[1] = Argument::list({1}); }},
        Change{"Output", [](Graph& graph) { graph.outputs[0] = 3; }},
        Change{"Trainable", [](Graph& graph) { graph.parameters[0].trainable = false; }},
        Change{"Persistent", [](Graph& graph) { graph.buffers[0].persistent = false; }},
        Change{"ConstantsContent",
               [](Graph& graph) {
                 graph.constants[0].tensor = at::tensor({1.0f, 3.0f});
               }},
        Change{"Order", [](Graph& graph) { std::swap(graph.nodes[0], graph.nodes[1]); }}),
    [](const auto& info) { return info.param.name; });

TEST(Signature, IgnoresNamesLabelsAndInitialValues) {
  Graph graph = small_graph();
  for (Value& value : graph.values) value.name += "2";
  for (Node& node : graph.nodes) node.label += "2";
  graph.parameters[0].name = "other";
  graph.parameters[0].initialisation = {Initialisation::Kind::kNormal, 0, 1};
  graph.parameters[0].initial = at::ones({3, 4});
  graph.buffers[0].name = "other";
  graph.buffers[0].initial = at::ones({2});
  EXPECT_EQ(graph.signature(), small_graph().signature());
}

TEST(Signature, TellsListsOfNumbersApart) {
  const auto signature = [](c10::IValue constant) {
    Graph graph = small_graph();
    graph.nodes[1].arguments[2] = Argument::fixed(std::move(constant));
    return graph.signature();
  };
  EXPECT_NE(signature(std::vector<int64_t>{1, 2}), signature(std::vector<int64_t>{12}));
  EXPECT_NE(signature("ab"), signature("a"));
  EXPECT_EQ(signature(std::vector<int64_t>{1, 2}), signature(std::vector<int64_t>{1, 2}));
}

TEST(Signature, RefusesAConstantItCannotCompare) {
  Graph graph = small_graph();
  graph.nodes[1].arguments[2] = Argument::fixed(at::ones({2}));
  EXPECT_THROW(graph.signature(), GraphError);
}

TEST(ParameterCount, CountsScalars) { EXPECT_EQ(small_graph().parameter_count(), 12); }

struct Cost {
  std::string name;
  std::string layers;
  std::vector<int64_t> shape;
  double multiply_adds;
};

class ForwardCost : public testing::TestWithParam<Cost> {};

TEST_P(ForwardCost, CountsMultiplyAddsOfOneSample) {
  const Graph graph = build_layer_list(nlohmann::json::parse(GetParam().layers), {"x", GetParam().shape});
  EXPECT_EQ(graph.forward_flops_per_sample(), 2 * GetParam().multiply_adds);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, ForwardCost,
    testing::Values(Cost{"Linear", R"([{"linear": 5}])", {7}, 7 * 5},
                    Cost{"LinearAtPositions", R"([{"linear": {"out": 5, "each_position": true}}])", {3, 7}, 3 * 7 * 5},
                    Cost{"Conv1d", R"([{"conv1d": {"out": 5, "kernel": 3}}])", {2, 10}, 8 * 5 * 2 * 3},
                    Cost{"Conv2dInGroups",
                         R"([{"conv2d": {"out": 6, "kernel": 3, "padding": 1, "groups": 2}}])",
                         {4, 5, 5},
                         25 * 6 * 2 * 9},
                    Cost{"Conv2dSameUneven",
                         R"([{"conv2d": {"out": 6, "kernel": 4, "padding": "same"}}])",
                         {4, 5, 5},
                         25 * 6 * 4 * 16},
                    Cost{"Conv3d", R"([{"conv3d": {"out": 2, "kernel": 2}}])", {3, 3, 3, 3}, 8 * 2 * 3 * 8},
                    Cost{"ConvTranspose2d",
                         R"([{"conv_transpose2d": {"out": 6, "kernel": 3, "stride": 2, "groups": 2}}])",
                         {4, 5, 5},
                         25 * 4 * 3 * 9},
                    Cost{"Others", R"(["relu", "batch_norm", {"max_pool2d": 2}])", {4, 4, 4}, 0}),
    [](const auto& info) { return info.param.name; });

TEST(ForwardCost, CountsMatrixProducts) { EXPECT_EQ(small_graph().forward_flops_per_sample(), 2 * 3 * 4); }

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string> known = {"linear", "conv2d", "conv1d", "relu", "elu"};
  EXPECT_EQ(nearest_name("lineer", known), "linear");
  EXPECT_EQ(nearest_name("conv2", known), "conv2d");
  EXPECT_EQ(nearest_name("ocnv1d", known), "conv1d");
  EXPECT_EQ(nearest_name("rleu", known), "relu");
  EXPECT_EQ(nearest_name("eluu", known), "elu");
  EXPECT_EQ(nearest_name("", {}), "");
}

}  // namespace
}  // namespace tutti::graph
