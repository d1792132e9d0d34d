// Programs: where gradients go, what is kept and dropped, who may share, what is refused.
#include "src/program/program.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <random>
#include <thread>

#include "node_graph.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;

class ProgramTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
    at::manual_seed(11);
  }
};

int64_t defined_results(const BoundModel& model) {
  int64_t count = 0;
  const graph::Graph& graph = model.program->graph();
  for (size_t id = 0; id < graph.values.size(); ++id) {
    count += graph.values[id].kind == graph::ValueKind::kResult && model.frame.values[id].defined();
  }
  return count;
}

TEST_P(ProgramTest, AParameterUsedTwiceGetsTheSumOfBothGradients) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId weight = graph.parameter(at::randn({4, 4}, at::kDouble));
  const auto tied = [&](ValueId x) {
    return graph.call("aten::linear", "", {Argument::of(x), Argument::of(weight), Argument::none()});
  };
  graph.output(tied(graph.relu(tied(input))));
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor x = at::randn({3, 4}, at::kDouble);
  const at::Tensor leaf = model.parameters[0].clone().set_requires_grad(true);
  const at::Tensor expected = at::relu(x.mm(leaf.t())).mm(leaf.t());
  EXPECT_TRUE(near(model.forward({x}), expected.detach(), 1e-14));
  const at::Tensor gradient = at::randn({3, 4}, at::kDouble);
  model.backward(gradient.clone());
  EXPECT_TRUE(near(model.gradients[0], torch::autograd::grad({expected}, {leaf}, {gradient})[0], 1e-14));
}

TEST_P(ProgramTest, AValueReadBySeveralNodesGetsTheSumOfTheirGradients) {
  NodeGraph graph;
  const ValueId stem = graph.linear(graph.input({6}), 6);
  const ValueId once = graph.add_values(stem, graph.relu(stem));
  const ValueId twice = graph.add_values(once, graph.linear(once, 6));
  graph.output(graph.call("aten::cat", "", {Argument::list({twice, stem, graph.relu(twice)}), integer(1)}));
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor x = at::randn({5, 6}, at::kDouble);
  std::vector<at::Tensor> p;
  for (const at::Tensor& parameter : model.parameters) p.push_back(parameter.clone().set_requires_grad(true));
  const at::Tensor a = at::linear(x, p[0], p[1]);
  const at::Tensor b = a + at::relu(a);
  const at::Tensor c = b + at::linear(b, p[2], p[3]);
  const at::Tensor expected = at::cat({c, a, at::relu(c)}, 1);
  EXPECT_TRUE(near(model.forward({x}), expected.detach(), 1e-14));
  const at::Tensor gradient = at::randn({5, 18}, at::kDouble);
  model.backward(gradient.clone());
  const std::vector<at::Tensor> gradients = torch::autograd::grad({expected}, p, {gradient});
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(near(model.gradients[i], gradients[i], 1e-13)) << i;
}

TEST_P(ProgramTest, SeveralOutputsOneOfThemReadInside) {
  NodeGraph graph;
  const ValueId hidden = graph.linear(graph.input({4}), 4);
  const ValueId last = graph.linear(graph.relu(hidden), 2);
  graph.output(last);
  graph.output(hidden);
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor x = at::randn({3, 4}, at::kDouble);
  std::vector<at::Tensor> p;
  for (const at::Tensor& parameter : model.parameters) p.push_back(parameter.clone().set_requires_grad(true));
  const at::Tensor a = at::linear(x, p[0], p[1]);
  const at::Tensor b = at::linear(at::relu(a), p[2], p[3]);
  model.forward({x});
  const at::Tensor gradient_b = at::randn({3, 2}, at::kDouble), gradient_a = at::randn({3, 4}, at::kDouble);
  model.frame.gradients[hidden] = gradient_a.clone();
  model.backward(gradient_b.clone());
  const std::vector<at::Tensor> gradients = torch::autograd::grad({b, a}, p, {gradient_b, gradient_a});
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(near(model.gradients[i], gradients[i], 1e-13)) << i;
}

TEST_P(ProgramTest, AParameterWithoutInfluenceGetsZero) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId unread = graph.parameter(at::randn({3}, at::kDouble));
  const ValueId dead = graph.linear(input, 2);
  graph.output(graph.linear(input, 3));
  static_cast<void>(unread);
  static_cast<void>(dead);
  BoundModel model(compile(graph, GetParam()));
  model.forward({at::randn({2, 4}, at::kDouble)});
  model.backward(at::ones({2, 3}, at::kDouble));
  for (const size_t i : {0, 1, 2}) {
    EXPECT_TRUE(at::equal(model.gradients[i], at::zeros_like(model.gradients[i]))) << "parameter " << i;
  }
  EXPECT_GT(model.gradients[3].abs().sum().item<double>(), 0);
}

TEST_P(ProgramTest, AFrozenParametersGradientIsNotWritten) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  const ValueId frozen = graph.parameter(at::randn({4, 4}, at::kDouble), /*trainable=*/false);
  const ValueId hidden = graph.call("aten::linear", "", {Argument::of(input), Argument::of(frozen), Argument::none()});
  graph.output(graph.linear(graph.relu(hidden), 3));
  BoundModel model(compile(graph, GetParam()));
  model.forward({at::randn({2, 4}, at::kDouble)});
  model.backward(at::ones({2, 3}, at::kDouble));
  EXPECT_TRUE(model.gradients[0].isnan().all().item<bool>());
  EXPECT_FALSE(model.gradients[1].isnan().any().item<bool>());
}

TEST_P(ProgramTest, TheStepCounterRunsInTrainingOnly) {
  NodeGraph graph;
  graph.output(graph.batch_norm(graph.input({3})));
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor x = at::randn({4, 3}, at::kDouble);
  for (int i = 0; i < 3; ++i) {
    model.forward({x});
    model.backward(at::ones({4, 3}, at::kDouble));
  }
  model.forward({x}, /*training=*/false);
  EXPECT_EQ(model.buffers[2].item<int64_t>(), 3);
}

TEST_P(ProgramTest, EverythingUnboundIsDroppedAfterARun) {
  NodeGraph graph;
  graph.output(
      graph.linear(graph.flatten(graph.max_pool2d(graph.relu(graph.conv2d(graph.input({1, 6, 6}), 2, 3, 1)), 2)), 3));
  BoundModel model(compile(graph, GetParam()));
  const at::Tensor x = at::randn({2, 1, 6, 6}, at::kDouble);
  const auto check_dropped = [&](const char* when) {
    EXPECT_EQ(defined_results(model), 0) << when;
    for (const at::Tensor& saved : model.frame.saved) EXPECT_FALSE(saved.defined()) << when;
    int64_t gradients = 0;
    for (const at::Tensor& gradient : model.frame.gradients) gradients += gradient.defined();
    EXPECT_EQ(gradients, static_cast<int64_t>(model.gradients.size())) << when;
  };
  model.forward({x});
  model.backward(at::ones({2, 3}, at::kDouble));
  check_dropped("after backward");
  model.forward({x});
  model.program->clear(model.frame);
  check_dropped("after clear");
  model.forward({x}, /*training=*/false);
  EXPECT_EQ(defined_results(model), 1) << "evaluation keeps the output alone";
}

TEST_P(ProgramTest, OneProgramServesEveryBatchSize) {
  NodeGraph graph;
  graph.output(graph.linear(graph.flatten(graph.conv2d(graph.input({2, 5, 5}), 3, 3, 0)), 4));
  BoundModel model(compile(graph, GetParam()));
  for (const int64_t rows : {1, 7, 2}) {
    const at::Tensor x = at::randn({rows, 2, 5, 5}, at::kDouble);
    const at::Tensor hidden = at::conv2d(x, model.parameters[0], model.parameters[1]).flatten(1);
    EXPECT_TRUE(near(model.forward({x}), at::linear(hidden, model.parameters[2], model.parameters[3]), 1e-13));
    model.backward(at::ones({rows, 4}, at::kDouble));
    EXPECT_TRUE(near(model.gradients[3], at::full({4}, rows, at::kDouble), 1e-13)) << rows;
  }
}

TEST_P(ProgramTest, ThreadsShareAProgram) {
  NodeGraph graph;
  graph.output(graph.linear(graph.dropout(graph.batch_norm(graph.linear(graph.input({8}), 16)), 0.5), 4));
  const auto shared = compile(graph, GetParam());
  const at::Tensor x = at::randn({6, 8}, at::kDouble);
  const auto run = [&] {
    BoundModel model(shared);
    for (int step = 0; step < 20; ++step) {
      model.frame.random.step = static_cast<uint32_t>(step);
      model.forward({x});
      model.backward(at::ones({6, 4}, at::kDouble));
    }
    return model.gradients;
  };
  const std::vector<at::Tensor> alone = run();
  std::vector<std::vector<at::Tensor>> found(4);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (auto& result : found) {
    threads.emplace_back([&] {
      at::get_num_threads();
      at::set_num_threads(1);
      result = run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : found) {
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(result[i], alone[i])) << i;
  }
}

TEST_P(ProgramTest, RefusesAnOperatorWithItsOwnRandomNumbers) {
  NodeGraph graph;
  graph.output(graph.call("aten::bernoulli", "p",
                          {Argument::of(graph.linear(graph.input({4}), 4)), number(0.5), Argument::none()}));
  try {
    compile(graph, GetParam());
    FAIL() << "compiled";
  } catch (const graph::GraphError& error) {
    EXPECT_NE(std::string(error.what()).find("aten::bernoulli.p"), std::string::npos) << error.what();
  }
}

TEST_P(ProgramTest, AFailureNamesTheNode) {
  NodeGraph graph;
  graph.output(graph.linear(graph.input({4}), 4));
  BoundModel model(compile(graph, GetParam()));
  try {
    model.forward({at::ones({2, 5}, at::kDouble)});
    FAIL() << "ran";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("node 0 (aten::linear)"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ProgramTest, ::testing::Values(Engine::kInstructions, Engine::kIsland),
                         [](const auto& info) { return info.param == Engine::kIsland ? "island" : "instructions"; });

TEST(Program, InPlaceOperatorsRunAsOneIsland) {
  NodeGraph graph;
  const ValueId hidden = graph.linear(graph.input({4}), 4);
  graph.call("aten::relu_", "", {Argument::of(hidden)});
  graph.output(graph.linear(hidden, 2));  // reads the changed value by its old name
  const auto program = compile(graph, Engine::kInstructions);
  EXPECT_EQ(program->instructions().size(), 1u);
  BoundModel model(program);
  const at::Tensor x = at::randn({3, 4}, at::kDouble);
  std::vector<at::Tensor> p;
  for (const at::Tensor& parameter : model.parameters) p.push_back(parameter.clone().set_requires_grad(true));
  const at::Tensor expected = at::linear(at::relu(at::linear(x, p[0], p[1])), p[2], p[3]);
  EXPECT_TRUE(near(model.forward({x}), expected.detach(), 1e-14));
  const at::Tensor gradient = at::randn({3, 2}, at::kDouble);
  model.backward(gradient.clone());
  const std::vector<at::Tensor> gradients = torch::autograd::grad({expected}, p, {gradient});
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(near(model.gradients[i], gradients[i], 1e-13)) << i;
}

TEST(Program, RefusesToWriteIntoItsInput) {
  NodeGraph graph;
  const ValueId input = graph.input({4});
  graph.output(graph.linear(graph.call("aten::relu_", "", {Argument::of(input)}), 2));
  EXPECT_THROW(compile(graph, Engine::kInstructions), graph::GraphError);
  EXPECT_THROW(compile(graph, Engine::kIsland), graph::GraphError);
}

TEST(Program, NamesItsIslands) {
  NodeGraph graph;
  const ValueId hidden = graph.linear(graph.input({4}), 4);
  const ValueId angle = graph.call("aten::atan", "", {Argument::of(hidden)});
  graph.output(graph.linear(graph.call("aten::hardshrink", "", {Argument::of(angle), number(0.1)}), 2));
  const auto program = compile(graph, Engine::kInstructions);
  EXPECT_EQ(program->islands(), (std::vector<std::string>{"aten::atan", "aten::hardshrink"}));
  EXPECT_EQ(program->instructions().size(), 3u);
}

TEST(Program, RefusesUnknownOperatorsAndWrongArguments) {
  NodeGraph graph;
  graph.output(graph.linear(graph.input({4}), 4));
  NodeGraph unknown = graph, incomplete = graph, disordered = graph;
  unknown.graph().nodes[0].target = "aten::no_such_operator";
  incomplete.graph().nodes[0].arguments.pop_back();
  disordered.graph().nodes[0].arguments[0] = Argument::of(disordered.graph().nodes[0].outputs[0]);
  for (NodeGraph* bad : {&unknown, &incomplete, &disordered}) {
    EXPECT_THROW(compile(*bad, Engine::kInstructions), graph::GraphError);
    EXPECT_THROW(compile(*bad, Engine::kIsland), graph::GraphError);
  }
}

/// A random stack of layers over images, with residual blocks and branches.
class RandomStack {
 public:
  explicit RandomStack(uint32_t seed) : random_(seed) {}

  NodeGraph build() {
    NodeGraph graph;
    ValueId x = graph.input({2, 8, 8});
    for (int i = 0; i < 5; ++i) x = image_layer(graph, x);
    x = graph.flatten(x);
    for (int i = 0; i < 3; ++i) x = row_layer(graph, x);
    graph.output(graph.linear(x, 3));
    return graph;
  }

 private:
  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }

  ValueId image_layer(NodeGraph& graph, ValueId x) {
    const int64_t channels = graph.sample(x).size(1), side = graph.sample(x).size(2);
    switch (pick(7)) {
      case 0:
        return graph.conv2d(x, 1 + pick(4), 3, 1);
      case 1:
        return graph.batch_norm(x);
      case 2:
        return graph.relu(x);
      case 3:
        return side > 2 ? graph.max_pool2d(x, 2) : x;
      case 4:
        return graph.dropout(x, 0.25);
      case 5:
        return graph.add_values(x, graph.relu(graph.batch_norm(graph.conv2d(x, channels, 3, 1))));
      default: {
        const ValueId branch = graph.conv2d(x, 2, 1, 0);
        return graph.call("aten::cat", "", {Argument::list({branch, x}), integer(1)});
      }
    }
  }

  ValueId row_layer(NodeGraph& graph, ValueId x) {
    switch (pick(6)) {
      case 0:
        return graph.linear(x, 2 + pick(6));
      case 1:
        return graph.batch_norm(x);
      case 2:
        return graph.relu(x);
      case 3:
        return graph.call("aten::tanh", "", {Argument::of(x)});
      case 4:
        return graph.call("aten::mul", "Tensor", {Argument::of(x), Argument::of(x)});
      default:
        return graph.add_values(x, graph.dropout(x, 0.5));
    }
  }

  std::mt19937 random_;
};

TEST(Program, InstructionsEqualTheIslandOnRandomStacks) {
  at::set_num_threads(1);
  at::manual_seed(13);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const NodeGraph graph = RandomStack(seed).build();
    for (const at::ScalarType precision : {at::kDouble, at::kFloat}) {
      BoundModel own(compile(graph, Engine::kInstructions, precision));
      BoundModel oracle(compile(graph, Engine::kIsland, precision));
      const double allowed = precision == at::kDouble ? 1e-10 : 2e-4;
      for (const int64_t rows : {6, 4}) {
        const at::Tensor x = at::randn({rows, 2, 8, 8}, at::kDouble).to(precision);
        EXPECT_TRUE(near(own.forward({x}), oracle.forward({x}), allowed)) << "seed " << seed;
        const at::Tensor gradient = at::randn({rows, 3}, at::kDouble).to(precision);
        own.backward(gradient.clone());
        oracle.backward(gradient.clone());
        for (size_t i = 0; i < own.gradients.size(); ++i) {
          const double size = oracle.gradients[i].norm().item<double>();
          const double error = (own.gradients[i] - oracle.gradients[i]).norm().item<double>();
          // A bias before batch norm has no influence: its gradient is rounding alone.
          EXPECT_LE(error, allowed * std::max(size, 1.0)) << "seed " << seed << " parameter " << i;
        }
        for (size_t i = 0; i < own.buffers.size(); ++i) {
          EXPECT_TRUE(near(own.buffers[i], oracle.buffers[i], allowed)) << "seed " << seed << " buffer " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti::testing
