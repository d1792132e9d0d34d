// Reads the blocks of a streamed data set ahead of a model that trains on its rows in shuffled order.
#ifndef TUTTI_SRC_TRAIN_READ_AHEAD_H
#define TUTTI_SRC_TRAIN_READ_AHEAD_H

#include <cstdint>
#include <utility>
#include <vector>

#include "data/data_set.h"
#include "data/sample_order.h"

namespace tutti::train {

/// The most bytes of streamed blocks from which rows are drawn at a time: of one window of the shuffled order. With
/// less memory to stream in, blocks are read again and again. 0 where nothing is streamed or the order is as stored.
int64_t shuffle_window_bytes(const data::DataSet& data, const data::Split& split, const data::SampleOrder& order);

/// Which rows to ask for next. All blocks of a window are drawn from until its end, so that what can be read ahead is
/// as much as the memory for streaming holds besides one window: a block of the next window for each that is passed.
class ReadAhead {
 public:
  ReadAhead(const data::DataSet& data, const data::Split& split, const data::SampleOrder& order, int64_t epoch_count);

  /// Row ranges [first, second) to be read ahead when positions [begin, end) of an epoch's order have been read: of no
  /// more than one block for each 4,096 positions, and mostly none. For any thread.
  std::vector<std::pair<int64_t, int64_t>> rows_after(int64_t epoch, int64_t begin, int64_t end) const;

 private:
  data::Split split_;
  data::SampleOrder order_;
  int64_t epoch_count_;
  int64_t lead_blocks_ = 0;  // between the block that is passed and the one that is asked for
};

}  // namespace tutti::train

#endif
