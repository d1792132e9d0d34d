// Steps over time; the products with the input are done for all steps at once.
#include "src/program/recurrent_direction.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tutti::program {
namespace {

using at::Tensor;

/// [times, rows, size] as [times × rows, size].
Tensor as_matrix(const Tensor& sequence) { return sequence.reshape({-1, sequence.size(-1)}); }

Tensor linear(const Tensor& matrix, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? at::addmm(bias, matrix, weight.t()) : at::mm(matrix, weight.t());
}

}  // namespace

RecurrentTrace RecurrentDirection::forward(const Tensor& input, const RecurrentWeights& weights, RecurrentState& state,
                                           Steps steps) const {
  const int64_t times = input.size(0), rows = input.size(1), size = state.hidden.size(-1);
  const Tensor from_input = reordered(
      linear(as_matrix(input), weights.input, weights.input_bias).view({times, rows, cell_.gate_count() * size}));
  const int64_t kept_count = steps == Steps::kKept ? times : 1;
  RecurrentTrace trace{at::empty({times + 1, rows, size}, input.options()),
                       at::empty({kept_count, rows, cell_.saved_count() * size}, input.options())};
  trace.hidden[0].copy_(state.hidden);
  for (int64_t time = 0; time < times; ++time) {
    const Tensor from_hidden = linear(state.hidden, weights.hidden, weights.hidden_bias);
    state = cell_.forward({from_input[time], from_hidden}, state, trace.steps[std::min(time, kept_count - 1)]);
    trace.hidden[time + 1].copy_(state.hidden);
  }
  return trace;
}

Tensor RecurrentDirection::output(const RecurrentTrace& trace) const {
  return reordered(trace.hidden.narrow(0, 1, trace.hidden.size(0) - 1));
}

RecurrentDirection::Gradients RecurrentDirection::backward(const Tensor& input, const RecurrentWeights& weights,
                                                           const RecurrentTrace& trace, const Tensor& output_gradient,
                                                           RecurrentState& state) const {
  const int64_t times = input.size(0), rows = input.size(1), gates = weights.input.size(0);
  const Tensor of_output = reordered(output_gradient);
  const Tensor of_input_gates = at::empty({times, rows, gates}, input.options());
  const Tensor of_hidden_gates = at::empty({times, rows, gates}, input.options());
  for (int64_t time = times - 1; time >= 0; --time) {
    state.hidden = at::add(state.hidden, of_output[time]);
    cell_.backward(trace.steps[time], trace.hidden[time], trace.hidden[time + 1], state,
                   {of_input_gates[time], of_hidden_gates[time]});
    state.hidden.addmm_(of_hidden_gates[time], weights.hidden);
  }
  const Tensor in_time = as_matrix(reordered(of_input_gates)), in_steps = as_matrix(of_hidden_gates);
  Gradients gradients;
  gradients.input = at::mm(in_time, weights.input).view({times, rows, weights.input.size(1)});
  gradients.weights.input = at::mm(in_time.t(), as_matrix(input));
  gradients.weights.hidden = at::mm(in_steps.t(), as_matrix(trace.hidden.narrow(0, 0, times)));
  if (weights.input_bias.defined()) {
    gradients.weights.input_bias = in_time.sum(0);
    gradients.weights.hidden_bias = in_steps.sum(0);
  }
  return gradients;
}

}  // namespace tutti::program
