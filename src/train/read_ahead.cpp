// Room for blocks ahead, and which ones they are.
#include "src/train/read_ahead.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tutti::train {
namespace {

constexpr int64_t kBlockRows = data::SampleOrder::kBlockRows;

std::pair<int64_t, int64_t> rows_of(const data::Split& split, const data::SampleOrder& order, int64_t block) {
  const auto [begin, end] = order.indices_of(block);
  return split.rows_around(begin, end);
}

}  // namespace

int64_t shuffle_window_bytes(const data::DataSet& data, const data::Split& split, const data::SampleOrder& order) {
  const int64_t all_bytes = data.stream_use().all_bytes;
  if (all_bytes == 0 || order.kind() != data::SampleOrder::Kind::kShuffled) return 0;
  std::vector<int64_t> bytes;
  for (int64_t block = 0; block < order.block_count(); ++block) {
    const auto [begin, end] = rows_of(split, order, block);
    bytes.push_back(data.streamed_bytes(begin, end));
  }
  const auto window_end = bytes.begin() + std::min(order.window_blocks(), order.block_count());
  std::partial_sort(bytes.begin(), window_end, bytes.end(), std::greater<>());
  // Neighbours share blocks where shards or the split do not end with a block of the order.
  return std::min(std::accumulate(bytes.begin(), window_end, int64_t{0}), all_bytes);
}

ReadAhead::ReadAhead(const data::DataSet& data, const data::Split& split, const data::SampleOrder& order,
                     int64_t epoch_count)
    : split_(split), order_(order), epoch_count_(epoch_count) {
  if (order.block_count() <= order.window_blocks()) return;  // one window is all there is
  const int64_t needed_bytes = shuffle_window_bytes(data, split, order);
  if (needed_bytes == 0) return;
  const data::StreamUse use = data.stream_use();
  const int64_t room_bytes = use.all_bytes <= use.window_bytes ? needed_bytes : use.window_bytes - needed_bytes;
  const int64_t blocks = room_bytes / std::max<int64_t>(needed_bytes / order.window_blocks(), 1);
  lead_blocks_ = std::clamp<int64_t>(blocks, 0, order.window_blocks());
}

std::vector<std::pair<int64_t, int64_t>> ReadAhead::rows_after(int64_t epoch, int64_t begin, int64_t end) const {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (lead_blocks_ == 0) return ranges;
  for (int64_t slot = (begin + kBlockRows - 1) / kBlockRows; slot * kBlockRows < end; ++slot) {
    int64_t wanted = slot + lead_blocks_, wanted_epoch = epoch;
    if (wanted < order_.block_count()) {
      if (wanted / order_.window_blocks() == slot / order_.window_blocks()) continue;
    } else {
      wanted -= order_.block_count();
      ++wanted_epoch;
    }
    if (wanted_epoch < epoch_count_) ranges.push_back(rows_of(split_, order_, order_.block_at(wanted_epoch, wanted)));
  }
  return ranges;
}

}  // namespace tutti::train
