// Sums over repeated places.
#include "src/program/broadcast.h"

#include <ATen/ATen.h>

namespace tutti::program {

Broadcast::Broadcast(const std::vector<int64_t>& from, const std::vector<int64_t>& to)
    : leading_(std::ssize(to) - std::ssize(from)) {
  for (int64_t d = 0; d < std::ssize(to); ++d) {
    if (d < leading_ || (from[d - leading_] == 1 && to[d] != 1)) repeated_.push_back(d);
  }
}

at::Tensor Broadcast::sum(const at::Tensor& gradient) const {
  if (!repeats()) return gradient;
  const at::Tensor sum = at::sum(gradient, repeated_, /*keepdim=*/true);
  return leading_ == 0 ? sum : sum.view(sum.sizes().slice(static_cast<size_t>(leading_)));
}

}  // namespace tutti::program
