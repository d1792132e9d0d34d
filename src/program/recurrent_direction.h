// One direction of one recurrent layer over a sequence.
#ifndef TUTTI_SRC_PROGRAM_RECURRENT_DIRECTION_H
#define TUTTI_SRC_PROGRAM_RECURRENT_DIRECTION_H

#include <ATen/core/Tensor.h>

#include <array>

#include "src/program/recurrent_cell.h"

namespace tutti::program {

/// Weights [gates × hidden size, size], then biases [gates × hidden size]; or their gradients.
struct RecurrentWeights {
  at::Tensor input, hidden;
  at::Tensor input_bias, hidden_bias;  ///< not defined where there are none
};

/// What forward leaves for backward, in the order of the steps.
struct RecurrentTrace {
  at::Tensor hidden;  ///< [times + 1, rows, hidden size]
  at::Tensor steps;   ///< [times, rows, saved]
};

class RecurrentDirection {
 public:
  enum class Order { kForward, kReversed };
  RecurrentDirection(const RecurrentCell& cell, Order order) : cell_(cell), order_(order) {}

  enum class Steps { kKept, kDropped };
  /// Runs over `input` [times, rows, size]. `state` is the first one before and the last one afterwards. Where the
  /// steps are dropped, the trace is for `output` only.
  RecurrentTrace forward(const at::Tensor& input, const RecurrentWeights& weights, RecurrentState& state,
                         Steps steps) const;

  /// The hidden states in the order of time: [times, rows, hidden size].
  at::Tensor output(const RecurrentTrace& trace) const;

  struct Gradients {
    at::Tensor input;  ///< [times, rows, size]
    RecurrentWeights weights;
  };
  /// `state` is the gradient of the last state before and of the first one afterwards.
  Gradients backward(const at::Tensor& input, const RecurrentWeights& weights, const RecurrentTrace& trace,
                     const at::Tensor& output_gradient, RecurrentState& state) const;

 private:
  /// From the order of time to that of the steps, and back.
  at::Tensor reordered(const at::Tensor& sequence) const {
    return order_ == Order::kReversed ? sequence.flip({0}) : sequence;
  }

  const RecurrentCell& cell_;
  Order order_;
};

}  // namespace tutti::program

#endif
