// Recurrent layers and cells against LibTorch's autograd: outputs, last states and every gradient.
#include <torch/csrc/autograd/autograd.h>

#include "data/philox.h"
#include "operator_case.h"
#include "src/program/dropout.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;

constexpr int64_t kTimes = 4, kRows = 3, kSize = 5, kHidden = 2;

struct LayersCase {
  std::string name;
  std::string cell;  ///< "lstm"
  int64_t layers = 1, directions = 1;
  bool has_biases = true;
  bool rows_first = true;
  double dropout = 0;
  std::vector<size_t> read = {0, 1};  ///< results that are outputs of the graph
  size_t frozen = SIZE_MAX;           ///< number of the parameter that needs no gradient
};
void PrintTo(const LayersCase& layers, std::ostream* out) { *out << layers.name; }

int64_t gate_count(const std::string& cell) { return cell.starts_with("lstm") ? 4 : cell.starts_with("gru") ? 3 : 1; }
bool has_cell_state(const std::string& cell) { return cell.starts_with("lstm"); }

/// Everything that the node reads is a parameter: input, states, weights.
class RecurrentGraph {
 public:
  explicit RecurrentGraph(const LayersCase& layers) : layers_(layers) {
    at::manual_seed(31);
    const ValueId input =
        parameter(layers.rows_first ? std::vector{kRows, kTimes, kSize} : std::vector{kTimes, kRows, kSize});
    const std::vector<ValueId> states =
        parameters(has_cell_state(layers.cell) ? 2 : 1, {layers.layers * layers.directions, kRows, kHidden});
    std::vector<ValueId> weights;
    for (int64_t layer = 0; layer < layers.layers; ++layer) {
      for (int64_t direction = 0; direction < layers.directions; ++direction) add_direction(layer, weights);
    }
    call("aten::" + layers.cell, "input",
         {Argument::of(input), states.size() == 1 ? Argument::of(states[0]) : Argument::list(states),
          Argument::list(weights), flag(layers.has_biases), integer(layers.layers), number(layers.dropout), flag(true),
          flag(layers.directions == 2), flag(layers.rows_first)},
         1 + states.size());
  }

  NodeGraph& graph() { return graph_; }

 private:
  ValueId parameter(const std::vector<int64_t>& shape) {
    const bool is_trainable = graph_.graph().parameters.size() != layers_.frozen;
    return graph_.parameter(at::randn(shape, at::kDouble).mul_(0.7), is_trainable);
  }
  std::vector<ValueId> parameters(size_t count, const std::vector<int64_t>& shape) {
    std::vector<ValueId> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(parameter(shape));
    return ids;
  }
  void add_direction(int64_t layer, std::vector<ValueId>& weights) {
    const int64_t gates = gate_count(layers_.cell) * kHidden;
    weights.push_back(parameter({gates, layer == 0 ? kSize : layers_.directions * kHidden}));
    weights.push_back(parameter({gates, kHidden}));
    if (!layers_.has_biases) return;
    for (const ValueId bias : parameters(2, {gates})) weights.push_back(bias);
  }

  /// NodeGraph::call describes the first result; the last states have the shape of the first ones.
  void call(const std::string& target, const std::string& overload, const std::vector<Argument>& arguments,
            size_t result_count) {
    std::vector<ValueId> results{graph_.call(target, overload, arguments)};
    graph::Graph& graph = graph_.graph();
    while (results.size() < result_count) {
      graph.values.push_back(
          {graph::ValueKind::kResult, "state", at::kFloat, {layers_.layers * layers_.directions, kRows, kHidden}});
      results.push_back(std::ssize(graph.values) - 1);
    }
    for (const size_t i : layers_.read) graph.outputs.push_back(results[i]);
    for (size_t i = 0; i < results.size(); ++i) {
      if (std::find(layers_.read.begin(), layers_.read.end(), i) == layers_.read.end()) results[i] = graph::kNoValue;
    }
    graph.nodes.back().outputs = results;
  }

  const LayersCase& layers_;
  NodeGraph graph_;
};

class RecurrentTest : public ::testing::TestWithParam<LayersCase> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }
};

void run(BoundModel& model, const std::vector<at::Tensor>& gradients) {
  const std::vector<ValueId>& outputs = model.program->graph().outputs;
  model.forward({});
  for (size_t i = 0; i < outputs.size(); ++i) model.frame.gradients[outputs[i]] = gradients[i].clone();
  model.program->backward(model.frame);
}

TEST_P(RecurrentTest, EqualsAutograd) {
  for (const at::ScalarType precision : {at::kDouble, at::kFloat}) {
    RecurrentGraph built(GetParam());
    BoundModel own(compile(built.graph(), Engine::kInstructions, precision));
    BoundModel oracle(compile(built.graph(), Engine::kIsland, precision));
    EXPECT_EQ(own.program->islands(), std::vector<std::string>());
    std::vector<at::Tensor> gradients;
    for (const bool training : {false, true}) {
      own.forward({}, training);
      oracle.forward({}, training);
      gradients.clear();
      for (const ValueId output : own.program->graph().outputs) {
        const at::Tensor& expected = oracle.frame.values[output];
        EXPECT_TRUE(near(own.frame.values[output], expected, tolerance(precision))) << "value " << output;
        gradients.push_back(at::randn(expected.sizes(), expected.options()));
      }
    }
    run(own, gradients);
    run(oracle, gradients);
    for (size_t i = 0; i < own.gradients.size(); ++i) {
      if (i == GetParam().frozen) continue;
      EXPECT_TRUE(near(own.gradients[i], oracle.gradients[i], tolerance(precision))) << "gradient " << i;
    }
  }
}

std::vector<LayersCase> cases() {
  std::vector<LayersCase> all;
  for (const std::string cell : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    all.push_back({.name = cell, .cell = cell});
    all.push_back({.name = cell + "_times_first", .cell = cell, .rows_first = false});
    all.push_back({.name = cell + "_without_biases", .cell = cell, .has_biases = false});
    all.push_back({.name = cell + "_deep_both_ways", .cell = cell, .layers = 2, .directions = 2});
    all.push_back({.name = cell + "_output_only", .cell = cell, .layers = 2, .read = {0}});
    all.push_back({.name = cell + "_state_only", .cell = cell, .directions = 2, .read = {1}});
    all.push_back({.name = cell + "_of_data", .cell = cell, .frozen = 0});
    all.push_back({.name = cell + "_frozen_weight", .cell = cell, .frozen = 4});
  }
  all.push_back({.name = "lstm_all_results", .cell = "lstm", .layers = 2, .directions = 2, .read = {0, 1, 2}});
  all.push_back({.name = "lstm_cell_state_only", .cell = "lstm", .read = {2}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layers, RecurrentTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

class RecurrentCellTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(RecurrentCellTest, EqualsAutograd) { expect_equals_island(GetParam()); }

std::vector<OperatorCase> cells() {
  std::vector<OperatorCase> all;
  for (const std::string cell : {"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"}) {
    for (const bool has_biases : {true, false}) {
      const int64_t gates = gate_count(cell) * kHidden;
      const size_t states = has_cell_state(cell) ? 2 : 1;
      std::vector<TestOperand> operands{rows_of({kSize})};
      operands.insert(operands.end(), states, rows_of({kHidden}));
      operands.insert(operands.end(), {fixed({gates, kSize}), fixed({gates, kHidden})});
      if (has_biases) operands.insert(operands.end(), 2, fixed({gates}));
      const auto arguments = [=](const std::vector<ValueId>& ids) {
        std::vector<Argument> list{Argument::of(ids[0]),
                                   states == 2 ? Argument::list({ids[1], ids[2]}) : Argument::of(ids[1])};
        for (size_t i = 1 + states; i < ids.size(); ++i) list.push_back(Argument::of(ids[i]));
        list.resize(6, Argument::none());
        return list;
      };
      all.push_back({cell + (has_biases ? "" : "_without_biases"), "aten::" + cell, "", operands, arguments, states});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cells, RecurrentCellTest, ::testing::ValuesIn(in_both_precisions(cells())), run_name);

TEST(Recurrent, DropsBetweenLayersByThePhiloxMask) {
  const LayersCase deep{.name = "", .cell = "lstm", .layers = 2, .dropout = 0.4, .read = {0}};
  RecurrentGraph built(deep);
  built.graph().graph().values[0].shape = {graph::kBatch, kTimes, kSize};
  BoundModel model(compile(built.graph(), Engine::kInstructions));
  model.frame.random.key = data::RandomKey::of(42, "dropout");
  model.frame.random.first_row = 20;
  std::vector<at::Tensor> p;
  for (const at::Tensor& parameter : model.parameters) p.push_back(parameter.clone().set_requires_grad(true));
  const auto layer = [&](const at::Tensor& input, int64_t index) {
    const std::vector<at::Tensor> weights(p.begin() + 3 + 4 * index, p.begin() + 7 + 4 * index);
    const std::vector<at::Tensor> states{p[1].narrow(0, index, 1), p[2].narrow(0, index, 1)};
    return std::get<0>(at::lstm(input, states, weights, true, 1, 0, true, false, true));
  };
  const program::DropoutSite site{
      .node = 0, .probability = 0.4, .rows = program::RowLayout({1, kTimes, graph::kBatch, kHidden})};
  const at::Tensor mask =
      program::dropout_mask({1, kTimes, kRows, kHidden}, model.frame.random, site, at::kDouble)[0].transpose(0, 1);
  const at::Tensor expected = layer(layer(p[0], 0) * mask, 1);
  EXPECT_TRUE(near(model.forward({}), expected.detach(), 1e-12));
  const at::Tensor gradient = at::randn(expected.sizes(), at::kDouble);
  model.backward(gradient.clone());
  const std::vector<at::Tensor> gradients = torch::autograd::grad({expected}, p, {gradient});
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(near(model.gradients[i], gradients[i], 1e-11)) << i;

  const LayersCase plain{.name = "", .cell = "lstm", .layers = 2, .read = {0}};
  RecurrentGraph without(plain);
  BoundModel oracle(compile(without.graph(), Engine::kIsland));
  EXPECT_TRUE(near(model.forward({}, /*training=*/false), oracle.forward({}, /*training=*/false), 1e-12));
}

}  // namespace
}  // namespace tutti::testing
