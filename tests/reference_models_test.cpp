// Networks of torchvision, timm, transformers and torch.nn against what PyTorch computes with the same archives
// (tests/data/references, written by tests/pytorch/make_references.py, which says what the files hold).
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "node_graph.h"
#include "src/graph/import_pt2.h"
#include "src/train/optimizer.h"
#include "tests/stored_tensors.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;
using Json = nlohmann::json;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kSummaryCount = 16, kOutputSummaryCount = 256;
constexpr double kInputScale = 32;
constexpr double kLeastShare = 1e-3;  ///< of the norm of all tensors of a kind: what a smaller tensor is measured by
constexpr int64_t kStepCount = 5;

const std::filesystem::path kFolder = TUTTI_TEST_DATA "/references";

Json manifest() {
  std::ifstream file(kFolder / "manifest.json");
  return Json::parse(file);
}

std::vector<std::string> reference_names() {
  const Json entries = manifest();
  std::vector<std::string> names;
  for (auto entry = entries.cbegin(); entry != entries.cend(); ++entry) names.push_back(entry.key());
  return names;
}

std::shared_ptr<const graph::Graph> imported(const std::string& name) {
  return std::make_shared<const graph::Graph>(graph::import_pt2(kFolder / (name + ".pt2")).graph);
}

double norm_of(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

/// The largest difference of two lists of numbers from each other, relative to the expected number or to a share of the
/// norm of all.
double largest_difference(const std::vector<double>& found, const at::Tensor& expected) {
  if (std::ssize(found) != expected.numel()) {
    ADD_FAILURE() << found.size() << " numbers, expected " << expected.numel();
    return std::numeric_limits<double>::infinity();
  }
  const double total = norm_of(expected);
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto number = expected[static_cast<int64_t>(i)].item<double>();
    const double scale = std::max({std::abs(number), kLeastShare * total, 1e-300});
    const double difference = std::abs(found[i] - number) / scale;
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

/// Norm and elements of one tensor, as stored.
at::Tensor summary_of(const at::Tensor& tensor, int64_t most) {
  const at::Tensor flat = tensor.to(at::kDouble).reshape({-1});
  const int64_t count = std::min(most, flat.numel());
  const at::Tensor positions = at::arange(count).mul(flat.numel()).floor_divide(std::max<int64_t>(count, 1));
  return at::cat({flat.norm().view({1}), flat.index_select(0, positions)});
}

/// The largest difference of tensors from their stored summaries.
double largest_difference(const Tensors& found, const at::Tensor& stored, int64_t most) {
  std::vector<at::Tensor> summaries, expected;
  int64_t begin = 0;
  double squared_total = 0;
  for (const at::Tensor& tensor : found) {
    summaries.push_back(summary_of(tensor, most));
    const int64_t length = summaries.back().numel();
    if (begin + length > stored.numel()) break;
    expected.push_back(stored.slice(0, begin, begin + length));
    squared_total += std::pow(expected.back()[0].item<double>(), 2);
    begin += length;
  }
  if (expected.size() != found.size() || begin != stored.numel()) {
    ADD_FAILURE() << found.size() << " tensors, whose summaries are not as long as the stored " << stored.numel();
    return std::numeric_limits<double>::infinity();
  }
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double scale = std::max({expected[i][0].item<double>(), kLeastShare * std::sqrt(squared_total), 1e-300});
    const at::Tensor difference = (summaries[i] - expected[i]).abs();
    const double relative = std::max(difference[0].item<double>(), norm_of(difference.slice(0, 1))) / scale;
    if (!(relative <= largest)) largest = relative;
  }
  return largest;
}

at::Tensor wave(const at::Tensor& like) {
  return at::sin(0.7 * at::arange(like.numel(), at::kDouble) + 0.3).view(like.sizes()).to(like.scalar_type());
}

/// Parameters and buffers by every name that the state dict has for them.
template <typename State>
std::map<std::string, size_t> positions_by_name(const std::vector<State>& states) {
  std::map<std::string, size_t> positions;
  for (size_t i = 0; i < states.size(); ++i) {
    positions[states[i].name] = i;
    for (const std::string& name : states[i].other_names) positions[name] = i;
  }
  return positions;
}

class ReferenceModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }

  BoundModel compiled(Engine engine, at::ScalarType precision) const {
    return BoundModel(program::Program::compile(graph_, {engine, precision}));
  }

  Tensors inputs(int64_t batch, at::ScalarType precision) const {
    Tensors tensors;
    for (size_t i = 0; i < graph_->inputs.size(); ++i) {
      const at::Tensor& stored = file_.at(fmt::format("{}/input/{}", batch, i));
      tensors.push_back(stored.scalar_type() == at::kChar ? stored.to(precision) / kInputScale : stored);
    }
    return tensors;
  }

  static Tensors outputs(const BoundModel& model) {
    Tensors tensors;
    for (const ValueId id : model.program->graph().outputs) tensors.push_back(model.frame.values[id]);
    return tensors;
  }

  Tensors named(const char* list, const Tensors& tensors, const std::map<std::string, size_t>& positions) const {
    Tensors chosen;
    for (const std::string& name : Json::parse(file_.metadata.at(list)).get<std::vector<std::string>>()) {
      const auto found = positions.find(name);
      if (found == positions.end()) {
        ADD_FAILURE() << "the graph has no " << name;
      } else {
        chosen.push_back(tensors[found->second]);
      }
    }
    return chosen;
  }
  Tensors buffers_of(const BoundModel& model) const {
    return named("buffers", model.buffers, positions_by_name(graph_->buffers));
  }

  /// Ten times what rounding does in PyTorch itself.
  double allowed(at::ScalarType precision, const std::string& kind) const {
    const Json& rounding = entry_.at(precision == at::kFloat ? "float32" : "nudged");
    return std::max(tolerance(precision), 10 * rounding.value(kind, 0.0));
  }

  void expect_near(const std::string& kind, at::ScalarType precision, double difference) {
    const double most = allowed(precision, kind);
    EXPECT_LE(difference, most) << kind;
    double& worst = worst_[fmt::format("{}_{}", kind, c10::toString(precision))];
    worst = std::max(worst, difference);
  }

  void TearDown() override {
    for (const auto& [kind, difference] : worst_) RecordProperty(kind, fmt::format("{:.2g}", difference));
  }

  void check_step(Engine engine, at::ScalarType precision, int64_t batch) {
    BoundModel model = compiled(engine, precision);
    model.forward(inputs(batch, precision));
    const Tensors results = outputs(model);
    const auto stored = [&](const char* kind) { return file_.at(fmt::format("{}/{}", batch, kind)); };
    expect_near("outputs", precision, largest_difference(results, stored("outputs"), kOutputSummaryCount));
    for (size_t i = 0; i < results.size(); ++i) model.frame.gradients[graph_->outputs[i]] = wave(results[i]);
    model.program->backward(model.frame);
    const Tensors gradients = named("gradients", model.gradients, positions_by_name(graph_->parameters));
    expect_near("gradients", precision, largest_difference(gradients, stored("gradients"), kSummaryCount));
    expect_near("buffers", precision, largest_difference(buffers_of(model), stored("buffers"), kSummaryCount));
  }

  /// One step of a trajectory; returns its loss.
  double train(BoundModel& model, const train::OptimizerSpec& spec, int64_t step, std::vector<Tensors>& moments) const;
  void check_trajectory(const std::string& name, const train::OptimizerSpec& spec, at::ScalarType precision);

  const test::StoredTensors file_{kFolder / (GetParam() + ".safetensors")};
  const std::shared_ptr<const graph::Graph> graph_ = imported(GetParam());
  const Json entry_ = manifest().at(GetParam());
  std::map<std::string, double> worst_;  ///< differences by kind and precision
};

template <typename Element>
void update(const train::OptimizerSpec& spec, int64_t step, const at::Tensor& parameter, const at::Tensor& gradient,
            const Tensors& moments) {
  const auto elements = [](const at::Tensor& tensor) {
    return std::span(tensor.data_ptr<Element>(), static_cast<size_t>(tensor.numel()));
  };
  train::SegmentView<Element> segment{elements(parameter), elements(gradient), {}, {spec.lr, 0, spec.momentum}};
  if (spec.kind == train::OptimizerSpec::Kind::kAdam) segment.settings.momentum = spec.beta1;
  for (const at::Tensor& moment : moments) segment.moments.push_back(elements(moment));
  train::apply(spec, step, /*gradient_scale=*/1, /*clip_value=*/{}, segment);
}

double ReferenceModelTest::train(BoundModel& model, const train::OptimizerSpec& spec, int64_t step,
                                 std::vector<Tensors>& moments) const {
  const at::ScalarType precision = model.program->precision();
  model.forward(inputs((step - 1) % 2, precision));
  double loss = 0;
  for (const ValueId id : graph_->outputs) {
    const at::Tensor& output = model.frame.values[id];
    const at::Tensor error = output - wave(output);
    const auto rows = static_cast<double>(output.size(0));
    loss += error.to(at::kDouble).square().sum().item<double>() / (2 * rows);
    model.frame.gradients[id] = error / rows;
  }
  model.program->backward(model.frame);
  for (size_t i = 0; i < graph_->parameters.size(); ++i) {
    if (!graph_->parameters[i].trainable) continue;
    const at::Tensor& parameter = model.parameters[i];
    if (precision == at::kFloat) {
      update<float>(spec, step, parameter, model.gradients[i], moments[i]);
    } else {
      update<double>(spec, step, parameter, model.gradients[i], moments[i]);
    }
  }
  return loss;
}

std::vector<double> norms_of(const Tensors& tensors) {
  std::vector<double> norms;
  for (const at::Tensor& tensor : tensors) norms.push_back(norm_of(tensor));
  return norms;
}

void ReferenceModelTest::check_trajectory(const std::string& name, const train::OptimizerSpec& spec,
                                          at::ScalarType precision) {
  SCOPED_TRACE(fmt::format("{} in {}", name, c10::toString(precision)));
  BoundModel model = compiled(Engine::kInstructions, precision);
  std::vector<Tensors> moments;
  for (const at::Tensor& parameter : model.parameters) {
    Tensors& of_one = moments.emplace_back();
    for (int i = 0; i < spec.moment_count(); ++i) of_one.push_back(at::zeros_like(parameter));
  }
  std::vector<double> losses;
  for (int64_t step = 1; step <= kStepCount; ++step) losses.push_back(train(model, spec, step, moments));
  const auto expect = [&](const char* kind, const std::vector<double>& found) {
    const std::string key = name + "/" + kind;
    expect_near(key, precision, largest_difference(found, file_.at(key)));
  };
  expect("losses", losses);
  const Tensors parameters = named("parameters", model.parameters, positions_by_name(graph_->parameters));
  expect("parameters", norms_of(parameters));
  expect("buffers", norms_of(buffers_of(model)));
}

TEST_P(ReferenceModelTest, HasPyTorchsOutputsGradientsAndBuffersAtEachBatchSize) {
  for (const Engine engine : {Engine::kIsland, Engine::kInstructions}) {
    for (const at::ScalarType precision : {at::kDouble, at::kFloat}) {
      for (const int64_t batch : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} in {}, batch {}", engine == Engine::kIsland ? "island" : "instructions",
                                 c10::toString(precision), batch));
        check_step(engine, precision, batch);
      }
    }
  }
}

TEST_P(ReferenceModelTest, TrainsThoseParametersThatPyTorchDoes) {
  const auto trained = Json::parse(file_.metadata.at("gradients")).get<std::vector<std::string>>();
  const std::map<std::string, size_t> positions = positions_by_name(graph_->parameters);
  std::vector<bool> expected(graph_->parameters.size());
  for (const std::string& name : trained) expected.at(positions.at(name)) = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(graph_->parameters[i].trainable, expected[i]) << graph_->parameters[i].name;
  }
}

TEST_P(ReferenceModelTest, FollowsPyTorchsTrajectories) {
  using Kind = train::OptimizerSpec::Kind;
  for (const at::ScalarType precision : {at::kDouble, at::kFloat}) {
    check_trajectory("sgd", {.kind = Kind::kSgd, .lr = 1e-3, .momentum = 0.9}, precision);
    check_trajectory("adam", {.kind = Kind::kAdam, .lr = 1e-3, .eps = 1e-3}, precision);
  }
}

TEST_P(ReferenceModelTest, EvaluatesAsPyTorchDoes) {
  const bool is_stored = std::ranges::any_of(
      file_.tensors, [](const train::NamedTensor& tensor) { return tensor.name == "evaluation/outputs"; });
  if (!is_stored) GTEST_SKIP() << "in evaluation mode the network has other outputs";
  for (const Engine engine : {Engine::kIsland, Engine::kInstructions}) {
    BoundModel model = compiled(engine, at::kDouble);
    model.forward(inputs(0, at::kDouble), /*training=*/false);
    expect_near("evaluation", at::kDouble,
                largest_difference(outputs(model), file_.at("evaluation/outputs"), kOutputSummaryCount));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceModelTest, ::testing::ValuesIn(reference_names()),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

/// How the nodes of graphs run: as an instruction each, or in islands.
struct NodeCount {
  int64_t nodes = 0, in_islands = 0;
  std::map<std::string, int64_t> island_operators;  ///< nodes of each operator that is in some island
};

NodeCount count_nodes(const std::shared_ptr<const graph::Graph>& graph) {
  NodeCount count;
  const auto program = program::Program::compile(graph);
  count.nodes = count.in_islands = std::ssize(graph->nodes);
  for (const program::Instruction* instruction : program->instructions()) count.in_islands -= !instruction->is_island();
  const std::vector<std::string> islands = program->islands();
  for (const graph::Node& node : graph->nodes) {
    const std::string name = operator_name(node);
    if (std::ranges::find(islands, name) != islands.end()) ++count.island_operators[name];
  }
  return count;
}

TEST(ReferenceModels, RunAtLeastNineTenthsOfTheirNodesAsInstructions) {
  NodeCount total;
  std::string report;
  for (const std::string& name : reference_names()) {
    const NodeCount count = count_nodes(imported(name));
    total.nodes += count.nodes;
    total.in_islands += count.in_islands;
    for (const auto& [target, nodes] : count.island_operators) total.island_operators[target] += nodes;
    report += fmt::format("{:20} {:4} nodes, {:4} in islands\n", name, count.nodes, count.in_islands);
  }
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [target, nodes] : total.island_operators) sorted.emplace_back(nodes, target);
  std::sort(sorted.rbegin(), sorted.rend());
  for (const auto& [nodes, target] : sorted) report += fmt::format("{:5} {}\n", nodes, target);
  EXPECT_LE(10 * total.in_islands, total.nodes) << total.in_islands << " of " << total.nodes << " nodes in islands\n"
                                                << report;
}

}  // namespace
}  // namespace tutti::testing
