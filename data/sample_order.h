// The order in which a model sees the rows of its data set: a pure function of seeds and epoch.
#ifndef TUTTI_DATA_SAMPLE_ORDER_H
#define TUTTI_DATA_SAMPLE_ORDER_H

#include <cstdint>
#include <utility>
#include <vector>

#include "data/philox.h"

namespace tutti::data {

/// A part of the rows of a data set, held out at random by the data set's seed: within every block of 4,096 rows the
/// first round(fraction * rows) of a keyed permutation are held out. No table is stored.
class Split {
 public:
  enum class Part { kAll, kKept, kHeldOut };

  /// `fraction` in [0, 1).
  Split(int64_t row_count, double fraction, uint64_t data_seed, Part part);

  int64_t size() const { return size_; }

  /// The row of the data set that stands at `index` of this part; 0 <= index < size().
  int64_t row(int64_t index) const;

  /// A range [first, second) of rows of the data set that holds all those at `begin` to `end` - 1 of this part, and is
  /// longer than they by less than two blocks, but for the rows of the other part. Requires 0 <= begin < end <= size().
  std::pair<int64_t, int64_t> rows_around(int64_t begin, int64_t end) const;

 private:
  int64_t row_count_;
  int64_t size_;
  uint64_t data_seed_;
  double fraction_;
  Part part_;
};

/// Blocks of 4,096 positions are permuted by (data seed, epoch); inside windows of consecutive permuted blocks the
/// positions are permuted by (model seed, epoch, window). The same whether the data lies in memory or is streamed, and
/// for every number of ranks, lanes and grains.
class SampleOrder {
 public:
  enum class Kind { kSequential, kShuffled };
  static constexpr int64_t kBlockRows = 4096;

  SampleOrder(int64_t size, Kind kind, uint64_t data_seed, uint64_t model_seed, int64_t window_blocks = 64);

  /// The rows (indices into a Split) at positions [begin, begin + count) of this epoch's order, into `rows`.
  /// Requires 0 <= begin and begin + count <= size.
  void rows(int64_t epoch, int64_t begin, int64_t count, std::vector<int64_t>& rows) const;

  Kind kind() const { return kind_; }
  int64_t window_blocks() const { return window_blocks_; }
  int64_t block_count() const { return (size_ + kBlockRows - 1) / kBlockRows; }

  /// The block that stands in a slot of this epoch's order, 0 <= slot < block_count(): with its window's other blocks
  /// it gives the rows of about 4,096 positions from slot * 4,096 on.
  int64_t block_at(int64_t epoch, int64_t slot) const;

  /// The indices [first, second) into a Split that belong to a block.
  std::pair<int64_t, int64_t> indices_of(int64_t block) const;

 private:
  Permutation blocks_of(int64_t epoch) const;

  int64_t size_;
  Kind kind_;
  uint64_t data_seed_, model_seed_;
  int64_t window_blocks_;
};

}  // namespace tutti::data

#endif
