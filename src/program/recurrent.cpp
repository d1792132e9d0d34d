// Layers one after another, the directions of each side by side.
#include "src/program/recurrent.h"

#include <ATen/ATen.h>

#include <array>

#include "src/program/recurrent_direction.h"
#include "src/program/recurrent_structure.h"

namespace tutti::program {
namespace {

using at::Tensor;
using graph::ValueId;
using Form = RecurrentStructure::Form;

class Recurrent final : public Instruction {
 public:
  Recurrent(const NodeContext& context, RecurrentStructure structure)
      : cell_(*structure.cell),
        form_(structure.form),
        structure_(std::move(structure)),
        input_(context.value(0)),
        input_target_(context.target(0)),
        input_value_(context.graph().values[input_]),
        hidden_size_(context.shape(structure_.states.front().value).back()),
        kept_slot_(context.new_slot()),
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {
    for (int64_t i = 0; i < stack_size(); ++i) {
      trace_slots_.push_back({context.new_slot(), context.new_slot()});
      for (const RecurrentWeight& weight : structure_.weights[i]) {
        if (weight.value != graph::kNoValue) weight_values_.push_back(context.graph().values[weight.value]);
      }
    }
    for (int64_t layer = 0; layer < structure_.layers; ++layer) input_slots_.push_back(context.new_slot());
  }

  void forward(Frame& frame) const override {
    Tensor sequence = first_sequence(frame);
    if (frame.training && structure_.dropout) frame.saved[kept_slot_] = draw_between_layers(frame, sequence);
    std::vector<RecurrentState> last;
    for (int64_t layer = 0; layer < structure_.layers; ++layer) {
      if (layer > 0) {
        sequence = after_dropout(frame, sequence, layer);
        if (frame.training) frame.saved[input_slots_[layer]] = sequence;
      }
      std::vector<Tensor> outputs;
      for (int64_t i = layer * structure_.directions; i < (layer + 1) * structure_.directions; ++i) {
        RecurrentState& state = last.emplace_back(first_state(frame, i));
        RecurrentTrace trace = direction(i).forward(
            sequence, weights(frame, i), state,
            frame.training ? RecurrentDirection::Steps::kKept : RecurrentDirection::Steps::kDropped);
        outputs.push_back(direction(i).output(trace));
        if (frame.training) save(frame, i, std::move(trace));
      }
      sequence = outputs.size() == 1 ? outputs.front() : at::cat(outputs, -1);
    }
    set_results(frame, sequence, last);
  }

  void backward(Frame& frame) const override {
    std::vector<RecurrentWeights> of_weights(static_cast<size_t>(stack_size()));
    std::vector<RecurrentState> of_states;
    for (int64_t i = 0; i < stack_size(); ++i) of_states.push_back(last_state_gradient(frame, i));
    Tensor gradient = output_gradient(frame);
    for (int64_t layer = structure_.layers - 1; layer >= 0; --layer) {
      const Tensor input = layer == 0 ? first_sequence(frame) : frame.saved[input_slots_[layer]];
      Tensor of_input;
      for (int64_t d = 0; d < structure_.directions; ++d) {
        const int64_t i = layer * structure_.directions + d;
        RecurrentDirection::Gradients found =
            direction(i).backward(input, weights(frame, i), trace(frame, i),
                                  gradient.narrow(-1, d * hidden_size_, hidden_size_), of_states[i]);
        of_weights[i] = std::move(found.weights);
        of_input = d == 0 ? found.input : of_input.add_(found.input);
      }
      gradient = layer == 0 ? of_input : after_dropout(frame, of_input, layer);
    }
    deliver_all(frame, gradient, of_states, of_weights);
  }

  std::string name() const override { return name_; }

  std::vector<ValueId> kept_values() const override {
    std::vector<ValueId> kept{input_};
    for (const auto& weights : structure_.weights) kept.insert(kept.end(), {weights[0].value, weights[1].value});
    for (const auto& weights : structure_.weights) {
      if (weights[2].value != graph::kNoValue) kept.insert(kept.end(), {weights[2].value, weights[3].value});
    }
    return kept;
  }

  int64_t saved_bytes(const RunSize& size) const override {
    const int64_t steps = block_bytes(places(size) * cell_.saved_count() * hidden_size_ * size.element_bytes);
    const int64_t hidden = block_bytes((places(size) + rows(size)) * hidden_size_ * size.element_bytes);
    const int64_t between = structure_.layers - 1;
    const int64_t kept = structure_.dropout ? block_bytes(between * places(size) * channels()) : 0;
    return stack_size() * (steps + hidden) + between * sequence_bytes(size) + kept;
  }

  /// The input in the order of time, a layer's results, and gates: backward those from the input and from the hidden
  /// state, and gradients of all weights. A reversed direction has reordered copies.
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    const int64_t gates = cell_.gate_count() * hidden_size_ * size.element_bytes;
    const int64_t all_gates = block_bytes(places(size) * gates);
    const int64_t copied = form_ == Form::kRowsFirst ? value_bytes(input_value_, size.rows, size.element_bytes) : 0;
    const int64_t base = copied + structure_.directions * (all_gates + sequence_bytes(size));
    if (pass == Pass::kForward) return base + 2 * block_bytes(rows(size) * gates);
    int64_t of_weights = 0;
    for (const graph::Value& weight : weight_values_) {
      of_weights += value_bytes(weight, size.rows, size.element_bytes);
    }
    return base + all_gates + sequence_bytes(size) + of_weights;
  }

 private:
  struct TraceSlots {
    int64_t hidden, steps;
  };

  int64_t stack_size() const { return structure_.layers * structure_.directions; }
  int64_t channels() const { return structure_.directions * hidden_size_; }
  /// Times × rows.
  int64_t places(const RunSize& size) const {
    return element_count(input_value_, size.rows) / input_value_.shape.back();
  }
  int64_t rows(const RunSize& size) const {
    return graph::size_at(input_value_.shape[form_ == Form::kTimesFirst ? 1 : 0], size.rows);
  }
  int64_t sequence_bytes(const RunSize& size) const {
    return block_bytes(places(size) * channels() * size.element_bytes);
  }

  RecurrentDirection direction(int64_t i) const {
    const bool is_second = i % structure_.directions == 1;
    return {cell_, is_second ? RecurrentDirection::Order::kReversed : RecurrentDirection::Order::kForward};
  }

  /// [times, rows, size]
  Tensor times_first(const Tensor& value) const {
    if (form_ == Form::kStep) return value.unsqueeze(0);
    return form_ == Form::kRowsFirst ? value.transpose(0, 1).contiguous() : value;
  }
  /// A sequence as the node's values are.
  Tensor as_given(const Tensor& sequence) const {
    if (form_ == Form::kStep) return sequence.squeeze(0);
    return form_ == Form::kRowsFirst ? sequence.transpose(0, 1).contiguous() : sequence;
  }
  Tensor first_sequence(const Frame& frame) const { return times_first(frame.values[input_]); }

  RecurrentWeights weights(const Frame& frame, int64_t i) const {
    const auto value = [&](size_t position) {
      const ValueId id = structure_.weights[i][position].value;
      return id == graph::kNoValue ? Tensor() : frame.values[id];
    };
    return {value(0), value(1), value(2), value(3)};
  }

  /// The part of a node's state, or of its gradient, that belongs to direction i.
  Tensor state_part(const Tensor& state, int64_t i) const { return form_ == Form::kStep ? state : state[i]; }
  RecurrentState first_state(const Frame& frame, int64_t i) const {
    RecurrentState state{state_part(frame.values[structure_.states[0].value], i), Tensor()};
    if (cell_.has_cell_state()) state.cell = state_part(frame.values[structure_.states[1].value], i);
    return state;
  }
  Tensor whole_state(const std::vector<RecurrentState>& states, Tensor RecurrentState::*part) const {
    if (form_ == Form::kStep) return states.front().*part;
    std::vector<Tensor> parts;
    for (const RecurrentState& state : states) parts.push_back(state.*part);
    return at::stack(parts);
  }
  static Tensor RecurrentState::*part_of(size_t state) {
    return state == 0 ? &RecurrentState::hidden : &RecurrentState::cell;
  }

  void set_results(Frame& frame, const Tensor& sequence, const std::vector<RecurrentState>& last) const {
    if (structure_.output != graph::kNoValue) frame.values[structure_.output] = as_given(sequence);
    for (size_t s = 0; s < structure_.last_states.size(); ++s) {
      const ValueId id = structure_.last_states[s];
      if (id != graph::kNoValue) frame.values[id] = whole_state(last, part_of(s));
    }
  }

  void save(Frame& frame, int64_t i, RecurrentTrace trace) const {
    frame.saved[trace_slots_[i].hidden] = std::move(trace.hidden);
    frame.saved[trace_slots_[i].steps] = std::move(trace.steps);
  }
  RecurrentTrace trace(const Frame& frame, int64_t i) const {
    return {frame.saved[trace_slots_[i].hidden], frame.saved[trace_slots_[i].steps]};
  }

  Tensor draw_between_layers(const Frame& frame, const Tensor& sequence) const {
    return draw_kept({structure_.layers - 1, sequence.size(0), sequence.size(1), channels()}, frame.random,
                     *structure_.dropout);
  }
  /// What goes into `layer`, or its gradient.
  Tensor after_dropout(const Frame& frame, const Tensor& sequence, int64_t layer) const {
    if (!structure_.dropout || !frame.training) return sequence;
    return at::mul(sequence, frame.saved[kept_slot_][layer - 1]).mul_(structure_.dropout->scale());
  }

  /// Zeros where nobody reads the results.
  RecurrentState last_state_gradient(const Frame& frame, int64_t i) const {
    RecurrentState gradient;
    const Tensor& hidden = frame.saved[trace_slots_[i].hidden];
    for (size_t s = 0; s < structure_.last_states.size(); ++s) {
      const ValueId id = structure_.last_states[s];
      const bool is_given = id != graph::kNoValue && frame.gradients[id].defined();
      gradient.*part_of(s) = is_given ? state_part(frame.gradients[id], i) : at::zeros_like(hidden[0]);
    }
    return gradient;
  }
  Tensor output_gradient(const Frame& frame) const {
    const bool is_given = structure_.output != graph::kNoValue && frame.gradients[structure_.output].defined();
    if (is_given) return times_first(frame.gradients[structure_.output]);
    const Tensor& hidden = frame.saved[trace_slots_.front().hidden];
    return at::zeros({hidden.size(0) - 1, hidden.size(1), channels()}, hidden.options());
  }

  void deliver_all(Frame& frame, const Tensor& of_input, const std::vector<RecurrentState>& of_states,
                   const std::vector<RecurrentWeights>& of_weights) const {
    if (input_target_.needed()) deliver(frame, input_target_, as_given(of_input));
    for (size_t s = 0; s < structure_.states.size(); ++s) {
      const GradientTarget& target = structure_.states[s].target;
      if (target.needed()) deliver(frame, target, whole_state(of_states, part_of(s)));
    }
    for (size_t i = 0; i < of_weights.size(); ++i) {
      const RecurrentWeights& found = of_weights[i];
      const std::array<Tensor, 4> gradients{found.input, found.hidden, found.input_bias, found.hidden_bias};
      for (size_t w = 0; w < gradients.size(); ++w) deliver(frame, structure_.weights[i][w].target, gradients[w]);
    }
  }

  const RecurrentCell& cell_;
  Form form_;
  RecurrentStructure structure_;
  ValueId input_;
  GradientTarget input_target_;
  graph::Value input_value_;
  int64_t hidden_size_;
  int64_t kept_slot_;
  std::vector<TraceSlots> trace_slots_;
  std::vector<int64_t> input_slots_;
  std::vector<graph::Value> weight_values_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Instruction> make_recurrent_layers(const NodeContext& context) {
  return std::make_unique<Recurrent>(context, structure_of_layers(context));
}

std::unique_ptr<Instruction> make_recurrent_cell(const NodeContext& context) {
  return std::make_unique<Recurrent>(context, structure_of_cell(context));
}

}  // namespace tutti::program
