// Archives of torch.export against what PyTorch computes with the same models (tests/data/pt2).
#include "src/graph/import_pt2.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "node_graph.h"
#include "tests/stored_tensors.h"

namespace tutti::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Engine = program::CompileOptions::Engine;

std::filesystem::path data_file(const std::string& name) {
  return std::filesystem::path(TUTTI_TEST_DATA "/pt2") / name;
}

std::shared_ptr<const graph::Graph> imported(const std::string& name) {
  return std::make_shared<const graph::Graph>(graph::import_pt2(data_file(name + ".pt2")).graph);
}

int64_t count_of(const graph::Graph& graph, const std::string& target) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const graph::Node& node) { return node.target == target; });
}

const at::Tensor* find(const test::StoredTensors& file, const std::string& name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const train::NamedTensor& tensor) { return tensor.name == name; });
  return found == file.tensors.end() ? nullptr : &found->tensor;
}

struct RunCase {
  std::string name;
  Engine engine;
  at::ScalarType precision;
};

class ImportedRunTest : public ::testing::TestWithParam<RunCase> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }
};

/// One step on the stored batch. Where PyTorch has no gradient, the parameter must not be trained.
void check_step(const test::StoredTensors& file, const RunCase& run, const std::shared_ptr<const graph::Graph>& graph,
                const std::string& batch) {
  BoundModel model(program::Program::compile(graph, {run.engine, run.precision}));
  const double allowed = tolerance(run.precision);
  const std::string type = batch + (run.precision == at::kFloat ? "f32/" : "f64/");
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const at::Tensor& input = file.at(batch + "input/" + std::to_string(i));
    inputs.push_back(at::isFloatingType(input.scalar_type()) ? input.to(run.precision) : input);
  }
  EXPECT_TRUE(near(model.forward(inputs), file.at(type + "output"), allowed));
  model.backward(file.at(batch + "output_gradient").to(run.precision, false, /*copy=*/true));
  for (size_t i = 0; i < graph->parameters.size(); ++i) {
    const graph::Parameter& parameter = graph->parameters[i];
    const at::Tensor* expected = find(file, type + "gradient/" + parameter.name);
    EXPECT_EQ(parameter.trainable, expected != nullptr) << parameter.name;
    if (expected == nullptr || !parameter.trainable) continue;
    ASSERT_EQ(model.gradients[i].sizes(), expected->sizes()) << parameter.name;
    const double error = (model.gradients[i].to(at::kDouble) - *expected).norm().item<double>();
    // A gradient that is zero but for rounding (a bias before batch norm) is measured against the loss's scale.
    const double scale =
        std::max(expected->norm().item<double>(), file.at(batch + "output_gradient").norm().item<double>());
    EXPECT_LE(error, allowed * scale) << parameter.name;
  }
  for (size_t i = 0; i < graph->buffers.size(); ++i) {
    EXPECT_TRUE(near(model.buffers[i], file.at(type + "buffer/" + graph->buffers[i].name), allowed))
        << graph->buffers[i].name;
  }
}

TEST_P(ImportedRunTest, ComputesWhatPyTorchComputesAtEachBatchSize) {
  const test::StoredTensors file(data_file(GetParam().name + ".safetensors"));
  const std::shared_ptr<const graph::Graph> graph = imported(GetParam().name);
  for (const std::string batch : {"0/", "1/"}) {
    if (find(file, batch + "input/0") == nullptr) continue;
    SCOPED_TRACE("batch " + batch);
    check_step(file, GetParam(), graph, batch);
  }
}

std::vector<RunCase> run_cases() {
  std::vector<RunCase> cases;
  for (const std::string name :
       {"mlp", "flattened", "conv_net", "transformer", "lstm", "frozen_teacher", "functional_conv_net", "channels_last",
        "two_inputs", "fixed_transformer", "autocast_off"}) {
    for (const Engine engine : {Engine::kIsland, Engine::kInstructions}) {
      for (const at::ScalarType precision : {at::kFloat, at::kDouble}) cases.push_back({name, engine, precision});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<RunCase>& info) {
  return info.param.name + (info.param.engine == Engine::kIsland ? "_island_" : "_instructions_") +
         c10::toString(info.param.precision);
}

INSTANTIATE_TEST_SUITE_P(Archives, ImportedRunTest, ::testing::ValuesIn(run_cases()), case_name);

TEST(ImportPt2Test, KeepsNamesAndOrderOfInputs) {
  const auto graph = imported("two_inputs");
  ASSERT_EQ(graph->inputs.size(), 2u);
  EXPECT_EQ(graph->values[graph->inputs[0]].name, "x");
  EXPECT_EQ(graph->values[graph->inputs[1]].name, "extra");
  EXPECT_THAT(graph->values[graph->inputs[1]].shape, ElementsAre(graph::kBatch, 2));
}

TEST(ImportPt2Test, MakesTiedWeightsOneParameterWithAllItsNames) {
  const auto graph = imported("transformer");
  std::vector<std::string> names;
  for (const graph::Parameter& parameter : graph->parameters) {
    if (parameter.other_names.empty()) continue;
    names.push_back(parameter.name);
    names.insert(names.end(), parameter.other_names.begin(), parameter.other_names.end());
  }
  EXPECT_THAT(names, ElementsAre("tokens.weight", "head.weight"));
}

TEST(ImportPt2Test, ReplacesWritesThatNobodyElseSees) {
  const auto graph = imported("conv_net");
  for (const char* target : {"aten::relu_", "aten::hardtanh_"}) EXPECT_EQ(count_of(*graph, target), 0) << target;
  EXPECT_EQ(count_of(*graph, "aten::add"), 1);
  EXPECT_EQ(count_of(*graph, "aten::add_"), 2);  // the counters of two batch norms
}

TEST(ImportPt2Test, PutsAWrittenPartBackIntoTheTensorItIsPartOf) {
  const auto graph = imported("two_inputs");
  for (const char* target : {"aten::copy_", "aten::fill_"}) EXPECT_EQ(count_of(*graph, target), 0) << target;
  EXPECT_EQ(count_of(*graph, "aten::slice_scatter"), 1);
  EXPECT_EQ(count_of(*graph, "aten::select_scatter"), 1);
}

TEST(ImportPt2Test, RefusesAutocastThatIsOn) {
  try {
    imported("autocast_on");
    FAIL() << "it was imported";
  } catch (const graph::GraphError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("wrap_with_autocast"), HasSubstr("Remove it")));
  }
}

TEST(ImportPt2Test, ComputesConstantsOnce) {
  EXPECT_EQ(count_of(*imported("transformer"), "aten::arange"), 0);
  EXPECT_EQ(count_of(*imported("two_inputs"), "aten::lift_fresh_copy"), 0);
}

TEST(ImportPt2Test, MarksTheBatchInShapesAndItsMultiples) {
  const auto graph = imported("flattened");
  std::vector<std::vector<int64_t>> shapes;
  for (const graph::Value& value : graph->values) {
    if (value.kind == graph::ValueKind::kResult) shapes.push_back(value.shape);
  }
  EXPECT_THAT(shapes, ::testing::Contains(ElementsAre(2 * graph::kBatch, 4)));
  EXPECT_THAT(shapes, ::testing::Contains(ElementsAre(graph::kBatch, 2, 3)));
}

TEST(ImportPt2Test, RecordsTheOnlyBatchSizeOfAStaticExport) {
  EXPECT_EQ(imported("fixed_transformer")->fixed_batch, 4);
  EXPECT_EQ(imported("transformer")->fixed_batch, std::nullopt);
}

TEST(ImportPt2Test, LeavesOutResultsWithoutRows) {
  const graph::ImportedModel model = graph::import_pt2(data_file("lstm.pt2"));
  EXPECT_EQ(model.graph.outputs.size(), 1u);
  EXPECT_EQ(model.left_out.size(), 1u);
}

TEST(ImportPt2Test, KeepsDropoutAsANodeOfItsOwnInPlaceToo) {
  const auto graph = imported("dropout_mlp");
  ASSERT_EQ(count_of(*graph, "aten::dropout"), 1);
  EXPECT_THAT(program::Program::compile(graph)->islands(), IsEmpty());
}

}  // namespace
}  // namespace tutti::testing
