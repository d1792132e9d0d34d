// Delivery of gradients: into bound views, or by keeping and adding tensors.
#include "src/program/gradient.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

using Mode = GradientTarget::Mode;

/// True where `tensor` may be written although it was delivered before: nobody else looks at its memory.
bool owns_its_memory(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_non_overlapping_and_dense();
}

}  // namespace

void deliver(Frame& frame, const GradientTarget& target, at::Tensor gradient) {
  if (!target.needed()) return;
  at::Tensor& present = frame.gradients[target.value];
  if (target.bound) {
    if (target.mode == Mode::kWrite) {
      present.copy_(gradient);
    } else {
      present.add_(gradient);
    }
  } else if (target.mode == Mode::kWrite || !present.defined()) {
    present = std::move(gradient);
  } else if (owns_its_memory(present)) {
    present.add_(gradient);
  } else {
    present = at::add(present, gradient);
  }
}

at::Tensor gradient_to_add_to(Frame& frame, const GradientTarget& target, at::IntArrayRef shape, at::ScalarType type) {
  at::Tensor& present = frame.gradients[target.value];
  if (target.bound) {
    if (target.mode == Mode::kWrite) present.zero_();
  } else if (target.mode == Mode::kWrite || !present.defined()) {
    present = at::zeros(shape, type);
  } else if (!owns_its_memory(present)) {
    present = present.clone(at::MemoryFormat::Contiguous);
  }
  return present;
}

void deliver_product(Frame& frame, const GradientTarget& target, const at::Tensor& left, const at::Tensor& right) {
  if (!target.needed()) return;
  if (!target.bound) {
    deliver(frame, target, at::mm(left, right));
  } else if (target.mode == Mode::kWrite) {
    at::mm_out(frame.gradients[target.value], left, right);
  } else {
    frame.gradients[target.value].addmm_(left, right);
  }
}

void deliver_row_sum(Frame& frame, const GradientTarget& target, const at::Tensor& matrix) {
  if (!target.needed()) return;
  if (target.bound && target.mode == Mode::kWrite) {
    at::sum_out(frame.gradients[target.value], matrix, {0});
  } else {
    deliver(frame, target, matrix.sum({0}));
  }
}

}  // namespace tutti::program
