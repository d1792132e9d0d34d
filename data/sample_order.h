// The order in which a model sees the rows of its data set: a pure function of seeds and epoch.
#ifndef TUTTI_DATA_SAMPLE_ORDER_H
#define TUTTI_DATA_SAMPLE_ORDER_H

#include <cstdint>
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

 private:
  int64_t size_;
  Kind kind_;
  uint64_t data_seed_, model_seed_;
  int64_t window_blocks_;
};

}  // namespace tutti::data

#endif
