// An operand of an elementwise instruction: a tensor that may be broadcast, or a number.
#ifndef TUTTI_SRC_PROGRAM_OPERAND_H
#define TUTTI_SRC_PROGRAM_OPERAND_H

#include <ATen/core/Tensor.h>

#include "src/program/broadcast.h"
#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

class Operand {
 public:
  /// The node's argument `position`; its result has the shape to which the operand is broadcast.
  Operand(const NodeContext& context, size_t position);

  graph::ValueId id() const { return id_; }  ///< kNoValue for a constant
  const at::Tensor& in(const Frame& frame) const { return id_ == graph::kNoValue ? number_ : frame.values[id_]; }

  bool needs_gradient() const { return target_.needed(); }
  /// True where the operand's gradient is the tensor that deliver_sum gets.
  bool takes_gradient_over() const { return !target_.bound && !broadcast_.repeats(); }
  /// Delivers the gradient of the operand after it was broadcast.
  void deliver_sum(Frame& frame, const at::Tensor& gradient) const {
    if (needs_gradient()) deliver(frame, target_, broadcast_.sum(gradient));
  }

  /// Bytes that deliver_sum needs beside its argument and the gradient that it leaves.
  int64_t scratch_bytes(const RunSize& size) const;

 private:
  graph::ValueId id_ = graph::kNoValue;
  at::Tensor number_;
  GradientTarget target_;
  Broadcast broadcast_;
  graph::Value value_;
};

/// True where the node's argument `position` is a tensor or a constant number.
bool is_operand(const graph::Node& node, size_t position);

}  // namespace tutti::program

#endif
