// Held-out parts and shuffled orders, computed position by position from keyed permutations.
#include "data/sample_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tutti::data {
namespace {

constexpr int64_t kBlockRows = SampleOrder::kBlockRows;

int64_t held_out_rows(double fraction, int64_t rows) {
  return static_cast<int64_t>(std::llround(fraction * static_cast<double>(rows)));
}

// Salt of a permutation that belongs to an epoch and a window.
uint64_t salt_of(int64_t epoch, int64_t window) {
  return static_cast<uint64_t>(epoch) << 32 ^ static_cast<uint64_t>(window);
}

}  // namespace

Split::Split(int64_t row_count, double fraction, uint64_t data_seed, Part part)
    : row_count_(row_count), size_(row_count), data_seed_(data_seed), fraction_(fraction), part_(part) {
  if (row_count < 0 || !(fraction >= 0 && fraction < 1)) {
    throw std::invalid_argument(
        fmt::format("Split: row count {}, fraction {}: expected a count of at least 0 and a "
                    "fraction in [0, 1)",
                    row_count, fraction));
  }
  if (part == Part::kAll) return;
  const int64_t held_out =
      row_count / kBlockRows * held_out_rows(fraction, kBlockRows) + held_out_rows(fraction, row_count % kBlockRows);
  size_ = part == Part::kHeldOut ? held_out : row_count - held_out;
}

int64_t Split::row(int64_t index) const {
  if (part_ == Part::kAll) return index;
  const int64_t held_out = held_out_rows(fraction_, kBlockRows);
  const int64_t per_block = part_ == Part::kHeldOut ? held_out : kBlockRows - held_out;
  const int64_t full_blocks = row_count_ / kBlockRows;
  const int64_t block = per_block == 0 ? full_blocks : std::min(index / per_block, full_blocks);
  const int64_t rows = std::min(kBlockRows, row_count_ - block * kBlockRows);
  const int64_t first = part_ == Part::kHeldOut ? 0 : held_out_rows(fraction_, rows);
  const Permutation permutation(rows, RandomKey::of(data_seed_, "split"), static_cast<uint64_t>(block));
  return block * kBlockRows + permutation(first + index - block * per_block);
}

std::pair<int64_t, int64_t> Split::rows_around(int64_t begin, int64_t end) const {
  if (part_ == Part::kAll) return {begin, end};
  const int64_t first_block = row(begin) / kBlockRows, last_block = row(end - 1) / kBlockRows;
  return {first_block * kBlockRows, std::min((last_block + 1) * kBlockRows, row_count_)};
}

SampleOrder::SampleOrder(int64_t size, Kind kind, uint64_t data_seed, uint64_t model_seed, int64_t window_blocks)
    : size_(size), kind_(kind), data_seed_(data_seed), model_seed_(model_seed), window_blocks_(window_blocks) {
  if (size < 0 || window_blocks < 1) {
    throw std::invalid_argument(
        fmt::format("SampleOrder: size {}, window of {} blocks: expected a size of at least 0 "
                    "and a window of at least 1",
                    size, window_blocks));
  }
}

Permutation SampleOrder::blocks_of(int64_t epoch) const {
  return {block_count(), RandomKey::of(data_seed_, "order of blocks"), salt_of(epoch, 0)};
}

int64_t SampleOrder::block_at(int64_t epoch, int64_t slot) const {
  return kind_ == Kind::kSequential ? slot : blocks_of(epoch)(slot);
}

std::pair<int64_t, int64_t> SampleOrder::indices_of(int64_t block) const {
  return {block * kBlockRows, std::min((block + 1) * kBlockRows, size_)};
}

void SampleOrder::rows(int64_t epoch, int64_t begin, int64_t count, std::vector<int64_t>& rows) const {
  if (begin < 0 || count < 0 || begin + count > size_) {
    throw std::out_of_range(fmt::format("SampleOrder: positions [{}, {}) of {}", begin, begin + count, size_));
  }
  rows.resize(static_cast<size_t>(count));
  if (count == 0) return;
  if (kind_ == Kind::kSequential) {
    for (int64_t i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = begin + i;
    return;
  }
  const int64_t block_count = this->block_count();
  const Permutation blocks = blocks_of(epoch);
  // Positions count on from slot to slot; the slots after the one that holds the short last block begin earlier.
  const int64_t short_slot = blocks.inverse(block_count - 1);
  const int64_t missing = block_count * kBlockRows - size_;
  const auto slot_begin = [&](int64_t slot) {
    return std::min(slot * kBlockRows - (slot > short_slot ? missing : 0), size_);
  };
  // The first window whose end lies behind `begin`: at most one after the one it would be without the short block.
  const int64_t window_rows = window_blocks_ * kBlockRows;
  int64_t window = begin / window_rows;
  if (slot_begin((window + 1) * window_blocks_) <= begin) ++window;

  const RandomKey row_key = RandomKey::of(model_seed_, "order of rows");
  std::vector<int64_t> block_at;  // of the slots of the window
  for (int64_t done = 0; done < count; ++window) {
    const int64_t first_slot = window * window_blocks_;
    const int64_t window_begin = slot_begin(first_slot), window_end = slot_begin(first_slot + window_blocks_);
    block_at.assign(static_cast<size_t>(std::min(window_blocks_, block_count - first_slot)), -1);
    const Permutation positions(window_end - window_begin, row_key, salt_of(epoch, window));
    for (int64_t position = begin + done; done < count && position < window_end; ++position, ++done) {
      const int64_t place = window_begin + positions(position - window_begin);
      int64_t slot = place / kBlockRows;
      if (slot_begin(slot + 1) <= place) ++slot;
      int64_t& block = block_at[static_cast<size_t>(slot - first_slot)];
      if (block < 0) block = blocks(slot);
      rows[static_cast<size_t>(done)] = block * kBlockRows + place - slot_begin(slot);
    }
  }
}

}  // namespace tutti::data
