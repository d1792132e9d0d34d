// The sum of gradients over the grains that one rank owns, in the order of the binary tree over all grains.
#ifndef TUTTI_SRC_TRAIN_GRAIN_SUM_H
#define TUTTI_SRC_TRAIN_GRAIN_SUM_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "comm/team.h"

namespace tutti::train {

/// Collects grains as lanes finish them, in any order and from any thread, and adds two sums as soon as both halves of
/// a subtree are there: S(level, i) = S(level - 1, 2 i) + S(level - 1, 2 i + 1). The bits do not depend on the order.
class GrainSum {
 public:
  /// A complete subtree's sum.
  struct Part {
    int buffer = 0;               ///< index into the pool
    std::vector<double> scalars;  ///< what travels beside the gradient
  };

  /// How many buffers the pool must have, so that `lane_count` lanes can work on the grains [begin, end) and the one
  /// next in line can always begin.
  static int buffer_count(int64_t begin, int64_t end, int64_t lane_count);

  /// `pool` holds flat gradients of equal length (or is empty: then only scalars are summed, and there is always
  /// room). [begin, end) are the grains to sum.
  GrainSum(int64_t begin, int64_t end, std::vector<at::Tensor> pool);

  /// Starts a new sum: all buffers free.
  void reset();

  /// A buffer for a grain that begins, if one is free.
  std::optional<int> acquire();

  /// True when acquire() would give a buffer.
  bool has_room() const;

  /// Hands in grain `grain`, computed in `buffer`. True for the caller whose grain was the last one.
  bool finish(int64_t grain, int buffer, std::vector<double> scalars);

  /// The sums, in the order of comm::subtrees_of(begin, end). Requires that all grains were handed in.
  std::vector<Part> parts() const;

  const at::Tensor& buffer(int index) const { return pool_[static_cast<size_t>(index)]; }

 private:
  using Key = std::pair<int, int64_t>;  // level, index
  std::optional<Part> take_sibling_or_store(Key key, Part& part);

  int64_t begin_, end_;
  std::vector<at::Tensor> pool_;
  mutable std::mutex mutex_;
  std::vector<int> free_;
  std::map<Key, Part> pending_;
  int64_t unfinished_ = 0;
};

}  // namespace tutti::train

#endif
