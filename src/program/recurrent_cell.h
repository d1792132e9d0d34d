// The cells of recurrent layers, one step each.
#ifndef TUTTI_SRC_PROGRAM_RECURRENT_CELL_H
#define TUTTI_SRC_PROGRAM_RECURRENT_CELL_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace tutti::program {

/// What goes from step to step, or its gradient. [rows, hidden size] each.
struct RecurrentState {
  at::Tensor hidden;
  at::Tensor cell;  ///< LSTM only
};

/// Gates are what the weights give for a step: [rows, gate_count × hidden size].
struct RecurrentGates {
  at::Tensor from_input, from_hidden;
};

class RecurrentCell {
 public:
  virtual ~RecurrentCell() = default;

  virtual int64_t gate_count() const = 0;
  /// Numbers per hidden unit that backward reads of a step, beside the states.
  virtual int64_t saved_count() const = 0;
  virtual bool has_cell_state() const { return false; }

  /// The state after a step. Writes what backward reads into `saved` [rows, saved_count × hidden size].
  virtual RecurrentState forward(const RecurrentGates& gates, const RecurrentState& before,
                                 const at::Tensor& saved) const = 0;

  /// `gradient` of the state after the step becomes that of the state before it, but for what flows through the gates,
  /// whose gradients are written into `gates`.
  virtual void backward(const at::Tensor& saved, const at::Tensor& hidden_before, const at::Tensor& hidden_after,
                        RecurrentState& gradient, const RecurrentGates& gates) const = 0;

  /// "lstm" (Hochreiter and Schmidhuber, 1997), "gru" (Cho et al., 2014; the reset gate after the product), "rnn_tanh"
  /// or "rnn_relu" (Elman, 1990), all as PyTorch defines them. Null for another name.
  static const RecurrentCell* find(std::string_view name);
};

}  // namespace tutti::program

#endif
