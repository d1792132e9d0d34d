// Programs of layer lists against cases computed by PyTorch (tests/data/graph).
#include <ATen/Parallel.h>

#include <filesystem>

#include "node_graph.h"
#include "src/graph/layer_list.h"
#include "tests/stored_tensors.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;
using Json = nlohmann::json;

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(TUTTI_TEST_DATA "/graph")) {
    if (file.path().extension() == ".safetensors") names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The case's graph with PyTorch's parameters. A float input becomes a parameter, so that its gradient can be read.
std::shared_ptr<const graph::Graph> graph_of(const test::StoredTensors& file) {
  graph::InputShape shape;
  shape.shape = Json::parse(file.metadata.at("input_shape")).get<std::vector<int64_t>>();
  shape.type = file.at("input").scalar_type() == at::kLong ? at::kLong : at::kFloat;
  graph::Graph graph = graph::build_layer_list(Json::parse(file.metadata.at("layers")), shape);
  for (graph::Parameter& parameter : graph.parameters) parameter.initial = file.at("parameter/" + parameter.name);
  if (shape.type == at::kFloat) {
    graph::Parameter input;
    input.value = graph.inputs.front();
    input.name = "input";
    input.initial = file.at("input");
    graph.values[input.value].kind = graph::ValueKind::kParameter;
    graph.inputs.clear();
    const int64_t rows = file.at("input").size(0);  // without an input the batch is a size like any other
    for (graph::Value& value : graph.values) {
      for (int64_t& size : value.shape) size = graph::size_at(size, rows);
    }
    graph.parameters.push_back(std::move(input));
  }
  return std::make_shared<const graph::Graph>(std::move(graph));
}

class StoredCaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }

  void check(Engine engine, at::ScalarType precision) const {
    const test::StoredTensors file(std::filesystem::path(TUTTI_TEST_DATA "/graph") / (GetParam() + ".safetensors"));
    BoundModel model(program::Program::compile(graph_of(file), {engine, precision}));
    const graph::Graph& graph = model.program->graph();
    const double allowed = tolerance(precision);
    const std::vector<at::Tensor> inputs =
        graph.inputs.empty() ? std::vector<at::Tensor>{} : std::vector<at::Tensor>{file.at("input")};
    EXPECT_TRUE(near(model.forward(inputs), file.at("output"), allowed));
    model.backward(file.at("output_gradient").to(precision, false, /*copy=*/true));
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const std::string& name = graph.parameters[i].name;
      const at::Tensor expected = file.at(name == "input" ? "input_gradient" : "gradient/" + name);
      const double error = (model.gradients[i].to(at::kDouble) - expected).norm().item<double>();
      // A gradient that is zero but for rounding (a bias before batch norm) is measured against the loss's scale.
      const double scale = std::max(expected.norm().item<double>(), file.at("output_gradient").norm().item<double>());
      EXPECT_LE(error, allowed * scale) << name;
    }
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      EXPECT_TRUE(near(model.buffers[i], file.at("buffer_after/" + graph.buffers[i].name), allowed))
          << graph.buffers[i].name;
    }
  }
};

TEST_P(StoredCaseTest, InstructionsInFloat64) { check(Engine::kInstructions, at::kDouble); }
TEST_P(StoredCaseTest, InstructionsInFloat32) { check(Engine::kInstructions, at::kFloat); }
TEST_P(StoredCaseTest, IslandInFloat64) { check(Engine::kIsland, at::kDouble); }
TEST_P(StoredCaseTest, IslandInFloat32) { check(Engine::kIsland, at::kFloat); }

TEST_P(StoredCaseTest, RunsWithoutIslandsUnlessPaddingIsUneven) {
  const test::StoredTensors file(std::filesystem::path(TUTTI_TEST_DATA "/graph") / (GetParam() + ".safetensors"));
  std::vector<std::string> expected;
  if (GetParam() == "conv2d_same_uneven") expected = {"aten::conv2d.padding"};  // pads one side more than the other
  EXPECT_EQ(program::Program::compile(graph_of(file))->islands(), expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, StoredCaseTest, ::testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti::testing
