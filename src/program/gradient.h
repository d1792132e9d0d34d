// Where the gradients that an instruction computes go.
#ifndef TUTTI_SRC_PROGRAM_GRADIENT_H
#define TUTTI_SRC_PROGRAM_GRADIENT_H

#include <ATen/core/Tensor.h>

#include "src/graph/graph.h"
#include "src/program/frame.h"

namespace tutti::program {

/// A gradient that an instruction's backward produces, and how it is to be delivered.
struct GradientTarget {
  enum class Mode { kNone, kWrite, kAdd };
  graph::ValueId value = graph::kNoValue;
  Mode mode = Mode::kNone;  ///< none: nobody needs it; write: first writer; add: there is one already
  bool bound = false;       ///< a parameter's: written into the bound view; otherwise a tensor may take its place

  bool needed() const { return mode != Mode::kNone; }
};

/// Delivers a freshly computed gradient as the target's mode says. A bound gradient is copied or added into its view;
/// an unbound one is kept, or added to what is there. May take over `gradient`'s memory. Nothing happens where the
/// target is not needed.
void deliver(Frame& frame, const GradientTarget& target, at::Tensor gradient);

/// The target's gradient for adding to it in place: what is there already, else zeros of the value's shape and type.
/// Nobody else looks at its memory. Requires a target that is needed.
at::Tensor gradient_to_add_to(Frame& frame, const GradientTarget& target, at::IntArrayRef shape, at::ScalarType type);

/// Delivers the matrix product left × right, straight into the view where the target is bound.
void deliver_product(Frame& frame, const GradientTarget& target, const at::Tensor& left, const at::Tensor& right);

/// Delivers the sum of the rows of `matrix` [rows, n], straight into the view [n] where the target is bound.
void deliver_row_sum(Frame& frame, const GradientTarget& target, const at::Tensor& matrix);

}  // namespace tutti::program

#endif
