// Graphs built node by node, models bound to their programs, and comparison by norm: for tests of src/program.
#ifndef TUTTI_TESTS_NODE_GRAPH_H
#define TUTTI_TESTS_NODE_GRAPH_H

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/operator_call.h"
#include "src/program/program.h"

namespace tutti::testing {

using graph::Argument;
using graph::ValueId;

inline Argument integer(int64_t value) { return Argument::fixed(value); }
inline Argument number(double value) { return Argument::fixed(value); }
inline Argument flag(bool value) { return Argument::fixed(value); }
inline Argument text(const char* value) { return Argument::fixed(std::string(value)); }
inline Argument integers(std::vector<int64_t> values) { return Argument::fixed(std::move(values)); }

/// Builds a graph; shapes of results are found by running each operator on two rows.
class NodeGraph {
 public:
  ValueId input(std::vector<int64_t> row_shape, at::ScalarType type = at::kFloat) {
    std::vector<int64_t> shape{kSampleRows};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    const ValueId id = add(graph::ValueKind::kInput, "input", at::ones(shape, type), /*has_batch=*/true);
    graph_.inputs.push_back(id);
    return id;
  }

  ValueId parameter(const at::Tensor& initial, bool trainable = true) {
    const std::string name = "parameter" + std::to_string(graph_.parameters.size());
    const ValueId id = add(graph::ValueKind::kParameter, name, initial.to(at::kFloat), /*has_batch=*/false);
    graph::Parameter parameter;
    parameter.value = id;
    parameter.name = name;
    parameter.initial = initial;
    parameter.trainable = trainable;
    graph_.parameters.push_back(std::move(parameter));
    return id;
  }

  ValueId buffer(const at::Tensor& initial) {
    const std::string name = "buffer" + std::to_string(graph_.buffers.size());
    const at::Tensor sample = at::isFloatingType(initial.scalar_type()) ? initial.to(at::kFloat) : initial.clone();
    const ValueId id = add(graph::ValueKind::kBuffer, name, sample, /*has_batch=*/false);
    graph_.buffers.push_back({id, name, initial, true});
    return id;
  }

  ValueId constant(const at::Tensor& tensor) {
    const ValueId id = add(graph::ValueKind::kConstant, "constant", tensor, /*has_batch=*/false);
    graph_.constants.push_back({id, tensor});
    return id;
  }

  /// A node with one output, which is returned.
  ValueId call(const std::string& target, const std::string& overload, std::vector<Argument> arguments) {
    bool has_batch = false;
    for (const Argument& argument : arguments) {
      for (const ValueId id : argument.ids) has_batch = has_batch || (id != graph::kNoValue && has_batch_[id]);
    }
    const ValueId id = add(graph::ValueKind::kResult, "result", at::Tensor(), has_batch);
    graph::Node node{target, overload, std::move(arguments), {id}, "node " + std::to_string(graph_.nodes.size())};
    const at::NoGradGuard no_grad;
    graph::OperatorCall{node}(samples_, /*training=*/true);
    describe(id);
    graph_.nodes.push_back(std::move(node));
    return id;
  }

  void output(ValueId id) { graph_.outputs.push_back(id); }
  graph::Graph& graph() { return graph_; }
  std::shared_ptr<const graph::Graph> finish() const { return std::make_shared<const graph::Graph>(graph_); }

  ValueId linear(ValueId input, int64_t out) {
    const int64_t in = samples_[input].size(-1);
    return call(
        "aten::linear", "",
        {Argument::of(input), Argument::of(parameter(at::randn({out, in}, at::kDouble) / std::sqrt(double(in)))),
         Argument::of(parameter(at::randn({out}, at::kDouble)))});
  }
  ValueId relu(ValueId input) { return call("aten::relu", "", {Argument::of(input)}); }
  ValueId conv2d(ValueId input, int64_t out, int64_t kernel, int64_t padding) {
    const int64_t in = samples_[input].size(1);
    const ValueId weight =
        parameter(at::randn({out, in, kernel, kernel}, at::kDouble) / std::sqrt(double(in * kernel * kernel)));
    return call("aten::conv2d", "",
                {Argument::of(input), Argument::of(weight), Argument::of(parameter(at::randn({out}, at::kDouble))),
                 integers({1, 1}), integers({padding, padding}), integers({1, 1}), integer(1)});
  }
  ValueId batch_norm(ValueId input) {
    const int64_t channels = samples_[input].size(1);
    const ValueId weight = parameter(at::randn({channels}, at::kDouble));
    const ValueId bias = parameter(at::randn({channels}, at::kDouble));
    const ValueId mean = buffer(at::zeros({channels}));
    const ValueId variance = buffer(at::ones({channels}));
    const ValueId count = buffer(at::zeros({}, at::kLong));
    call("aten::add_", "Tensor", {Argument::of(count), integer(1), integer(1)});
    return call("aten::batch_norm", "",
                {Argument::of(input), Argument::of(weight), Argument::of(bias), Argument::of(mean),
                 Argument::of(variance), flag(true), number(0.1), number(1e-5), flag(false)});
  }
  ValueId max_pool2d(ValueId input, int64_t kernel) {
    return call("aten::max_pool2d", "",
                {Argument::of(input), integers({kernel, kernel}), integers({}), integers({0, 0}), integers({1, 1}),
                 flag(false)});
  }
  ValueId dropout(ValueId input, double probability) {
    return call("aten::dropout", "", {Argument::of(input), number(probability), flag(true)});
  }
  ValueId flatten(ValueId input) {
    return call("aten::flatten", "using_ints", {Argument::of(input), integer(1), integer(-1)});
  }
  ValueId add_values(ValueId left, ValueId right) {
    return call("aten::add", "Tensor", {Argument::of(left), Argument::of(right), integer(1)});
  }
  const at::Tensor& sample(ValueId id) const { return samples_[id]; }

 private:
  static constexpr int64_t kSampleRows = 2;

  ValueId add(graph::ValueKind kind, const std::string& name, const at::Tensor& sample, bool has_batch) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back({kind, name, at::kFloat, {}});
    samples_.push_back(sample);
    has_batch_.push_back(has_batch);
    if (sample.defined()) describe(id);
    return id;
  }

  void describe(ValueId id) {
    graph::Value& value = graph_.values[id];
    value.type = samples_[id].scalar_type();
    value.shape = samples_[id].sizes().vec();
    if (has_batch_[id] && !value.shape.empty()) value.shape.front() = graph::kBatch;
  }

  graph::Graph graph_;
  std::vector<at::Tensor> samples_;
  std::vector<bool> has_batch_;
};

/// A model's own memory, bound to a frame. Gradients begin as NaN: a program must overwrite them.
struct BoundModel {
  std::shared_ptr<const program::Program> program;
  program::Frame frame;
  std::vector<at::Tensor> parameters, gradients, buffers;

  explicit BoundModel(std::shared_ptr<const program::Program> compiled) : program(std::move(compiled)) {
    frame = program->make_frame();
    const graph::Graph& graph = program->graph();
    for (const graph::Parameter& parameter : graph.parameters) {
      parameters.push_back(parameter.initial->to(program->precision(), /*non_blocking=*/false, /*copy=*/true));
      gradients.push_back(at::full_like(parameters.back(), std::numeric_limits<double>::quiet_NaN()));
      frame.values[parameter.value] = parameters.back();
      if (parameter.trainable) frame.gradients[parameter.value] = gradients.back();
    }
    for (const graph::Buffer& buffer : graph.buffers) {
      const bool is_float = at::isFloatingType(buffer.initial.scalar_type());
      buffers.push_back(
          buffer.initial.to(is_float ? program->precision() : buffer.initial.scalar_type(), false, /*copy=*/true));
      frame.values[buffer.value] = buffers.back();
    }
  }

  at::Tensor forward(const std::vector<at::Tensor>& inputs, bool training = true) {
    const graph::Graph& graph = program->graph();
    for (size_t i = 0; i < inputs.size(); ++i) frame.values[graph.inputs[i]] = inputs[i];
    frame.training = training;
    program->forward(frame);
    return frame.values[graph.outputs.front()];
  }

  void backward(at::Tensor output_gradient) {
    frame.gradients[program->graph().outputs.front()] = std::move(output_gradient);
    program->backward(frame);
  }
};

inline std::shared_ptr<const program::Program> compile(const NodeGraph& graph, program::CompileOptions::Engine engine,
                                                       at::ScalarType precision = at::kDouble) {
  program::CompileOptions options;
  options.engine = engine;
  options.precision = precision;
  return program::Program::compile(graph.finish(), options);
}

/// |found - expected| / |expected|, by the Euclidean norm.
inline double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor reference = expected.to(at::kDouble);
  const double scale = reference.norm().item<double>();
  const double error = (found.to(at::kDouble) - reference).norm().item<double>();
  return error == 0 ? 0 : error / std::max(scale, 1e-300);
}

inline double tolerance(at::ScalarType precision) { return precision == at::kDouble ? 1e-10 : 1e-5; }

/// Shape and values; NaN never passes.
inline ::testing::AssertionResult near(const at::Tensor& found, const at::Tensor& expected, double allowed) {
  if (!found.defined()) return ::testing::AssertionFailure() << "no tensor";
  if (found.sizes() != expected.sizes()) {
    return ::testing::AssertionFailure() << "shape " << found.sizes() << ", expected " << expected.sizes();
  }
  const double error = relative_error(found, expected);
  if (error <= allowed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "relative error " << error << " > " << allowed;
}

}  // namespace tutti::testing

#endif
