// LSTM, GRU and plain recurrent cells.
#include "src/program/recurrent_cell.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

using at::Tensor;

/// Part `index` of `count` equal ones along the last dimension.
Tensor part(const Tensor& tensor, int64_t index, int64_t count) {
  const int64_t size = tensor.size(-1) / count;
  return tensor.narrow(-1, index * size, size);
}

/// gradient × value × (1 - value): through a sigmoid with that value.
Tensor through_sigmoid(const Tensor& gradient, const Tensor& value) { return at::sigmoid_backward(gradient, value); }
/// gradient × (1 - value²).
Tensor through_tanh(const Tensor& gradient, const Tensor& value) { return at::tanh_backward(gradient, value); }

class Lstm final : public RecurrentCell {
 public:
  int64_t gate_count() const override { return 4; }
  int64_t saved_count() const override { return 6; }
  bool has_cell_state() const override { return true; }

  /// Gates: input, forget, new content, output. Saved: their values, the cell before, tanh of the cell after.
  RecurrentState forward(const RecurrentGates& gates, const RecurrentState& before,
                         const Tensor& saved) const override {
    const Tensor sum = at::add(gates.from_input, gates.from_hidden);
    for (const int64_t gate : {0, 1, 3}) part(saved, gate, 6).copy_(part(sum, gate, 4).sigmoid());
    part(saved, 2, 6).copy_(part(sum, 2, 4).tanh());
    part(saved, 4, 6).copy_(before.cell);
    Tensor cell = at::mul(part(saved, 1, 6), before.cell).addcmul_(part(saved, 0, 6), part(saved, 2, 6));
    part(saved, 5, 6).copy_(cell.tanh());
    return {at::mul(part(saved, 3, 6), part(saved, 5, 6)), std::move(cell)};
  }

  void backward(const Tensor& saved, const Tensor&, const Tensor&, RecurrentState& gradient,
                const RecurrentGates& gates) const override {
    const Tensor input = part(saved, 0, 6), forget = part(saved, 1, 6), content = part(saved, 2, 6);
    const Tensor output = part(saved, 3, 6), before = part(saved, 4, 6), after = part(saved, 5, 6);
    const Tensor cell = at::add(gradient.cell, through_tanh(at::mul(gradient.hidden, output), after));
    part(gates.from_input, 0, 4).copy_(through_sigmoid(at::mul(cell, content), input));
    part(gates.from_input, 1, 4).copy_(through_sigmoid(at::mul(cell, before), forget));
    part(gates.from_input, 2, 4).copy_(through_tanh(at::mul(cell, input), content));
    part(gates.from_input, 3, 4).copy_(through_sigmoid(at::mul(gradient.hidden, after), output));
    gates.from_hidden.copy_(gates.from_input);
    gradient.cell = at::mul(cell, forget);
    gradient.hidden = at::zeros_like(cell);
  }
};

class Gru final : public RecurrentCell {
 public:
  int64_t gate_count() const override { return 3; }
  int64_t saved_count() const override { return 4; }

  /// Gates: reset, update, new content. Saved: their values, and the hidden state's share of the content.
  RecurrentState forward(const RecurrentGates& gates, const RecurrentState& before,
                         const Tensor& saved) const override {
    const Tensor share = part(gates.from_hidden, 2, 3);
    for (const int64_t gate : {0, 1}) {
      part(saved, gate, 4).copy_(at::add(part(gates.from_input, gate, 3), part(gates.from_hidden, gate, 3)).sigmoid_());
    }
    part(saved, 3, 4).copy_(share);
    const Tensor content = at::addcmul(part(gates.from_input, 2, 3), part(saved, 0, 4), share).tanh_();
    part(saved, 2, 4).copy_(content);
    return {at::sub(before.hidden, content).mul_(part(saved, 1, 4)).add_(content), Tensor()};
  }

  void backward(const Tensor& saved, const Tensor& hidden_before, const Tensor&, RecurrentState& gradient,
                const RecurrentGates& gates) const override {
    const Tensor reset = part(saved, 0, 4), update = part(saved, 1, 4), content = part(saved, 2, 4);
    const Tensor of_content = at::sub(gradient.hidden, at::mul(gradient.hidden, update));
    const Tensor of_sum = through_tanh(of_content, content);
    part(gates.from_input, 0, 3).copy_(through_sigmoid(at::mul(of_sum, part(saved, 3, 4)), reset));
    part(gates.from_input, 1, 3).copy_(through_sigmoid(at::sub(hidden_before, content).mul_(gradient.hidden), update));
    part(gates.from_input, 2, 3).copy_(of_sum);
    gates.from_hidden.copy_(gates.from_input);
    part(gates.from_hidden, 2, 3).mul_(reset);
    gradient.hidden = at::mul(gradient.hidden, update);
  }
};

class Plain final : public RecurrentCell {
 public:
  enum class Kind { kTanh, kRelu };
  explicit Plain(Kind kind) : kind_(kind) {}

  int64_t gate_count() const override { return 1; }
  int64_t saved_count() const override { return 0; }

  RecurrentState forward(const RecurrentGates& gates, const RecurrentState&, const Tensor&) const override {
    Tensor sum = at::add(gates.from_input, gates.from_hidden);
    return {kind_ == Kind::kTanh ? sum.tanh_() : sum.relu_(), Tensor()};
  }

  void backward(const Tensor&, const Tensor&, const Tensor& hidden_after, RecurrentState& gradient,
                const RecurrentGates& gates) const override {
    gates.from_input.copy_(kind_ == Kind::kTanh ? through_tanh(gradient.hidden, hidden_after)
                                                : at::threshold_backward(gradient.hidden, hidden_after, 0));
    gates.from_hidden.copy_(gates.from_input);
    gradient.hidden = at::zeros_like(hidden_after);
  }

 private:
  Kind kind_;
};

}  // namespace

const RecurrentCell* RecurrentCell::find(std::string_view name) {
  static const Lstm lstm;
  static const Gru gru;
  static const Plain with_tanh(Plain::Kind::kTanh), with_relu(Plain::Kind::kRelu);
  if (name == "lstm") return &lstm;
  if (name == "gru") return &gru;
  if (name == "rnn_tanh") return &with_tanh;
  return name == "rnn_relu" ? &with_relu : nullptr;
}

}  // namespace tutti::program
