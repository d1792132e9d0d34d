// How a tensor is repeated to fill a larger shape, and how a gradient comes back from it.
#ifndef TUTTI_SRC_PROGRAM_BROADCAST_H
#define TUTTI_SRC_PROGRAM_BROADCAST_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti::program {

/// The dimensions along which a tensor is repeated when it is broadcast.
class Broadcast {
 public:
  /// Nothing is repeated.
  Broadcast() = default;
  /// `from` can be broadcast to `to`. Both have graph::kBatch where the batch is.
  Broadcast(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

  bool repeats() const { return !repeated_.empty(); }

  /// The gradient of the tensor, given that of the larger one: summed over the repeated places; `gradient` itself where
  /// there are none.
  at::Tensor sum(const at::Tensor& gradient) const;

 private:
  int64_t leading_ = 0;            ///< dimensions that the tensor does not have
  std::vector<int64_t> repeated_;  ///< of the larger shape, those too
};

}  // namespace tutti::program

#endif
