// One operator by its instruction and inside an autograd island, with its operands in every role they can have.
#ifndef TUTTI_TESTS_OPERATOR_CASE_H
#define TUTTI_TESTS_OPERATOR_CASE_H

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "node_graph.h"

namespace tutti::testing {

struct TestOperand {
  std::vector<int64_t> shape;  ///< of a row where there are rows
  bool has_rows = false;
  double low = -2, high = 2;  ///< values are uniform between
  bool is_rounded = false;    ///< to whole numbers: many are equal
  at::ScalarType type = at::kFloat;

  bool is_real() const { return type == at::kFloat; }

  at::Tensor random(int64_t rows) const {
    std::vector<int64_t> sizes = shape;
    if (has_rows) sizes.insert(sizes.begin(), rows);
    at::Tensor values = at::rand(sizes, at::kDouble).mul_(high - low).add_(low);
    if (is_rounded) values.round_();
    return type == at::kBool ? values.gt(0) : is_real() ? values : values.floor().to(type);
  }
};

inline TestOperand rows_of(std::vector<int64_t> shape) { return {std::move(shape), true}; }
inline TestOperand fixed(std::vector<int64_t> shape) { return {std::move(shape), false}; }
inline TestOperand between(double low, double high, TestOperand operand) {
  operand.low = low;
  operand.high = high;
  return operand;
}
inline TestOperand rounded(TestOperand operand) {
  operand.is_rounded = true;
  return operand;
}
inline TestOperand of_type(at::ScalarType type, TestOperand operand) {
  operand.type = type;
  return operand;
}

struct OperatorCase {
  std::string name;
  std::string target, overload;
  std::vector<TestOperand> operands;
  std::function<std::vector<Argument>(const std::vector<ValueId>&)> arguments;
  size_t result_count = 1;  ///< the first one is compared
};

/// The operands first, then constants.
inline std::function<std::vector<Argument>(const std::vector<ValueId>&)> followed_by(std::vector<Argument> constants) {
  return [constants = std::move(constants)](const std::vector<ValueId>& ids) {
    std::vector<Argument> arguments;
    for (const ValueId id : ids) arguments.push_back(Argument::of(id));
    arguments.insert(arguments.end(), constants.begin(), constants.end());
    return arguments;
  };
}

enum class Role {
  kPlain,      ///< an input or a frozen parameter: needs no gradient
  kParameter,  ///< the gradient is written into a bound view
  kComputed,   ///< the result of another node
};

inline std::vector<Role> roles_of(const TestOperand& operand) {
  if (!operand.is_real()) return {Role::kPlain};
  if (operand.has_rows) return {Role::kPlain, Role::kComputed};
  return {Role::kPlain, Role::kParameter, Role::kComputed};
}

/// Every combination of roles.
inline std::vector<std::vector<Role>> all_roles(const std::vector<TestOperand>& operands) {
  std::vector<std::vector<Role>> combinations{{}};
  for (const TestOperand& operand : operands) {
    std::vector<std::vector<Role>> longer;
    for (const std::vector<Role>& combination : combinations) {
      for (const Role role : roles_of(operand)) {
        longer.push_back(combination);
        longer.back().push_back(role);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

/// A graph whose inputs are filled by `draw_inputs`.
struct OperatorGraph {
  NodeGraph graph;
  std::vector<TestOperand> inputs;

  OperatorGraph(const OperatorCase& operation, const std::vector<Role>& roles) {
    std::vector<ValueId> ids;
    for (size_t i = 0; i < roles.size(); ++i) ids.push_back(add(operation.operands[i], roles[i]));
    graph.output(graph.call(operation.target, operation.overload, operation.arguments(ids)));
    graph.graph().nodes.back().outputs.resize(operation.result_count, graph::kNoValue);
  }

  std::vector<at::Tensor> draw_inputs(int64_t rows, at::ScalarType precision) const {
    std::vector<at::Tensor> tensors;
    for (const TestOperand& input : inputs) {
      tensors.push_back(input.random(rows));
      if (input.is_real()) tensors.back() = tensors.back().to(precision);
    }
    return tensors;
  }

 private:
  /// Factors near 1 keep the operand's sign and, nearly, its range.
  ValueId add(const TestOperand& operand, Role role) {
    const at::Tensor factors = at::rand(operand.shape, at::kDouble).mul_(0.2).add_(0.9);
    if (operand.has_rows || !operand.is_real()) {
      inputs.push_back(operand);
      const ValueId input = graph.input(operand.shape, operand.type);
      return role == Role::kPlain ? input : product(input, graph.parameter(factors));
    }
    const ValueId parameter = graph.parameter(operand.random(0), /*trainable=*/role != Role::kPlain);
    return role == Role::kComputed ? product(parameter, graph.constant(factors.to(at::kFloat))) : parameter;
  }

  ValueId product(ValueId left, ValueId right) {
    return graph.call("aten::mul", "Tensor", {Argument::of(left), Argument::of(right)});
  }
};

struct OperatorRun {
  OperatorCase operation;
  at::ScalarType precision;
};
inline void PrintTo(const OperatorRun& run, std::ostream* out) { *out << run.operation.name << " " << run.precision; }

inline void expect_equal_runs(BoundModel& own, BoundModel& oracle, const std::vector<at::Tensor>& inputs,
                              double allowed) {
  const at::Tensor expected = oracle.forward(inputs).clone();
  ASSERT_TRUE(near(own.forward(inputs), expected, allowed)) << "output";
  const at::Tensor gradient = at::randn(expected.sizes(), at::kDouble).to(expected.scalar_type());
  own.backward(gradient.clone());
  oracle.backward(gradient.clone());
  for (size_t i = 0; i < own.gradients.size(); ++i) {
    if (!own.program->graph().parameters[i].trainable) continue;
    EXPECT_TRUE(near(own.gradients[i], oracle.gradients[i], allowed)) << "gradient " << i;
  }
  EXPECT_TRUE(near(own.forward(inputs, /*training=*/false), oracle.forward(inputs, /*training=*/false), allowed))
      << "evaluation";
}

/// The oracle is LibTorch's autograd over the whole graph.
inline void expect_equals_island(const OperatorRun& run) {
  using Engine = program::CompileOptions::Engine;
  at::get_num_threads();
  at::set_num_threads(1);
  at::manual_seed(23);
  for (const std::vector<Role>& roles : all_roles(run.operation.operands)) {
    std::vector<int> numbers;
    for (const Role role : roles) numbers.push_back(static_cast<int>(role));
    SCOPED_TRACE(fmt::format("roles {}", fmt::join(numbers, " ")));
    const OperatorGraph graph(run.operation, roles);
    BoundModel own(compile(graph.graph, Engine::kInstructions, run.precision));
    BoundModel oracle(compile(graph.graph, Engine::kIsland, run.precision));
    EXPECT_EQ(own.program->islands(), std::vector<std::string>());
    for (const int64_t rows : {3, 5}) {
      expect_equal_runs(own, oracle, graph.draw_inputs(rows, run.precision), tolerance(run.precision));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

inline std::vector<OperatorRun> in_both_precisions(const std::vector<OperatorCase>& cases) {
  std::vector<OperatorRun> runs;
  for (const OperatorCase& operation : cases) {
    for (const at::ScalarType precision : {at::kDouble, at::kFloat}) runs.push_back({operation, precision});
  }
  return runs;
}

inline std::string run_name(const ::testing::TestParamInfo<OperatorRun>& info) {
  return info.param.operation.name + (info.param.precision == at::kDouble ? "_float64" : "_float32");
}

}  // namespace tutti::testing

#endif
