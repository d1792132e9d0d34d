// Autograd islands: forward with grad mode on, backward by torch::autograd::grad.
#include "src/program/autograd_island.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "src/program/gradient_flow.h"
#include "src/program/node_context.h"

namespace tutti::program {
namespace {

using graph::kNoValue;
using graph::OperatorCall;

bool is_dropout(const graph::Node& node) { return node.target == "aten::dropout" && node.overload.empty(); }

ValueSet buffers_of(const graph::Graph& graph) {
  ValueSet buffers(graph.values.size());
  for (const graph::Buffer& buffer : graph.buffers) buffers[buffer.value] = true;
  return buffers;
}

}  // namespace

AutogradIsland::AutogradIsland(const graph::Graph& graph, IslandBoundary boundary, at::ScalarType precision,
                               int64_t& next_slot)
    : boundary_(std::move(boundary)) {
  ValueSet buffers = buffers_of(graph);
  for (const int64_t node : boundary_.nodes) {
    Step& step = steps_.emplace_back(make_step(graph, node, precision));
    if (!step.call || step.call->mutated_values().empty()) continue;
    const std::vector<graph::ValueId>& written = step.call->mutated_values();
    step.updates_buffer = std::all_of(written.begin(), written.end(), [&](graph::ValueId id) { return buffers[id]; });
    step.input = written.front();
    if (step.updates_buffer && step.output != kNoValue) buffers[step.output] = true;
  }
  std::copy_if(boundary_.inputs.begin(), boundary_.inputs.end(), std::back_inserter(differentiated_),
               [](const GradientTarget& target) { return target.needed(); });
  first_input_slot_ = next_slot;
  first_output_slot_ = first_input_slot_ + static_cast<int64_t>(differentiated_.size());
  next_slot = first_output_slot_ + static_cast<int64_t>(boundary_.outputs.size());
  for (const int64_t node : boundary_.nodes) {
    for (const graph::ValueId id : graph.nodes[node].outputs) {
      if (id == kNoValue) continue;
      const bool is_output =
          std::find(boundary_.outputs.begin(), boundary_.outputs.end(), id) != boundary_.outputs.end();
      (is_output ? output_values_ : inner_values_).push_back(graph.values[id]);
    }
  }
}

AutogradIsland::Step AutogradIsland::make_step(const graph::Graph& graph, int64_t index, at::ScalarType precision) {
  const graph::Node& node = graph.nodes[index];
  Step step;
  step.name = operator_name(node);
  step.description = described(node);
  step.output = node.outputs.empty() ? kNoValue : node.outputs.front();
  OperatorCall call(node, precision);
  if (is_dropout(node)) {
    step.input = node.arguments.at(0).ids.at(0);
    if (node.arguments.at(2).constant.toBool()) {
      step.dropout = dropout_site(node, index, 1, graph.values[step.input].shape);
    } else {
      step.call.emplace(std::move(call));
    }
    return step;
  }
  if (call.is_random() && has_attention_formula(graph, node)) {
    step.attention.emplace(graph, node, index);
    return step;
  }
  if (call.is_random()) {
    throw graph::GraphError(fmt::format(
        "{}: the operator draws from LibTorch's own random generator, whose numbers depend on the order of runs. Set "
        "its dropout probability to 0, or use a dropout layer.",
        step.description));
  }
  step.call.emplace(std::move(call));
  return step;
}

std::vector<at::Tensor> AutogradIsland::bind_inputs(Frame& frame) const {
  std::vector<at::Tensor> values(frame.values.size());
  int64_t slot = first_input_slot_;
  for (const GradientTarget& input : boundary_.inputs) {
    values[input.value] = frame.values[input.value].variable_data();
    if (frame.training && input.needed()) {
      values[input.value].requires_grad_();
      frame.saved[slot++] = values[input.value];
    }
  }
  return values;
}

void AutogradIsland::run_step(const Step& step, std::vector<at::Tensor>& values, const Frame& frame) const {
  if (step.updates_buffer && !frame.training) {
    if (step.output != kNoValue) values[step.output] = values[step.input];
  } else if (step.call) {
    (*step.call)(values, frame.training);
  } else if (step.attention) {
    values[step.output] = (*step.attention)(values, frame.random, frame.training).output;
  } else if (!frame.training) {
    values[step.output] = values[step.input];
  } else {
    const at::Tensor& input = values[step.input];
    values[step.output] = input.mul(dropout_mask(input.sizes(), frame.random, *step.dropout, input.scalar_type()));
  }
}

void AutogradIsland::forward(Frame& frame) const {
  std::vector<at::Tensor> values = bind_inputs(frame);
  {
    const c10::AutoGradMode grad_mode(frame.training && !differentiated_.empty());
    for (const Step& step : steps_) {
      try {
        run_step(step, values, frame);
      } catch (const c10::Error& error) {
        throw std::runtime_error(fmt::format("{}: {}", step.description, error.what_without_backtrace()));
      }
    }
  }
  int64_t slot = first_output_slot_;
  for (const graph::ValueId id : boundary_.outputs) {
    frame.values[id] = values[id].variable_data();
    if (frame.training) frame.saved[slot] = values[id];
    ++slot;
  }
}

void AutogradIsland::backward(Frame& frame) const {
  std::vector<at::Tensor> outputs, output_gradients, inputs;
  for (size_t i = 0; i < boundary_.outputs.size(); ++i) {
    const at::Tensor& output = frame.saved[first_output_slot_ + static_cast<int64_t>(i)];
    const at::Tensor& gradient = frame.gradients[boundary_.outputs[i]];
    if (!gradient.defined() || !output.requires_grad()) continue;
    outputs.push_back(output);
    output_gradients.push_back(gradient);
  }
  for (size_t i = 0; i < differentiated_.size(); ++i) {
    inputs.push_back(frame.saved[first_input_slot_ + static_cast<int64_t>(i)]);
  }
  std::vector<at::Tensor> gradients(inputs.size());
  if (!outputs.empty()) {
    gradients = torch::autograd::grad(outputs, inputs, output_gradients, /*retain_graph=*/false,
                                      /*create_graph=*/false, /*allow_unused=*/true);
  }
  for (size_t i = 0; i < differentiated_.size(); ++i) {
    deliver(frame, differentiated_[i],
            gradients[i].defined() ? gradients[i].detach() : at::zeros_like(inputs[i].variable_data()));
  }
}

std::vector<std::string> AutogradIsland::operators() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) {
    if (std::find(names.begin(), names.end(), step.name) == names.end()) names.push_back(step.name);
  }
  return names;
}

std::string AutogradIsland::name() const { return fmt::format("island({})", fmt::join(operators(), ", ")); }

std::vector<graph::ValueId> AutogradIsland::kept_values() const {
  std::vector<graph::ValueId> kept = boundary_.outputs;
  for (const GradientTarget& input : boundary_.inputs) kept.push_back(input.value);
  return kept;
}

int64_t AutogradIsland::saved_bytes(const RunSize& size) const {
  int64_t bytes = 0;
  for (const graph::Value& value : inner_values_) bytes += value_bytes(value, size.rows, size.element_bytes);
  return bytes;
}

/// Autograd holds at the most a result's gradient and its input's at once, and the gradients of all parameters until
/// the end.
int64_t AutogradIsland::scratch_bytes(const RunSize& size, Pass pass) const {
  int64_t largest = 0;
  for (const auto* values : {&inner_values_, &output_values_}) {
    for (const graph::Value& value : *values) {
      largest = std::max(largest, value_bytes(value, size.rows, size.element_bytes));
    }
  }
  return pass == Pass::kForward ? largest : 2 * largest;
}

}  // namespace tutti::program
