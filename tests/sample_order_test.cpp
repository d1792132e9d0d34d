// Orders and splits against brute force over whole epochs.
#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

namespace tutti::data {
namespace {

constexpr int64_t kBlock = SampleOrder::kBlockRows;
const int64_t kSizes[] = {1, 2, 63, 4095, 4096, 4097, 9000, 2 * 4096, 3 * 4096 * 64 + 5};

std::vector<int64_t> epoch_of(const SampleOrder& order, int64_t size, int64_t epoch) {
  std::vector<int64_t> rows;
  order.rows(epoch, 0, size, rows);
  return rows;
}

// The definition, with whole tables: permuted blocks one after the other, then each window of them permuted.
std::vector<int64_t> reference_epoch(int64_t size, uint64_t data_seed, uint64_t model_seed, int64_t window_blocks,
                                     int64_t epoch) {
  const int64_t block_count = (size + kBlock - 1) / kBlock;
  const uint64_t epoch_salt = static_cast<uint64_t>(epoch) << 32;
  const Permutation blocks(block_count, RandomKey::of(data_seed, "order of blocks"), epoch_salt);
  std::vector<int64_t> result;
  for (int64_t first = 0, window = 0; first < block_count; first += window_blocks, ++window) {
    std::vector<int64_t> rows;
    for (int64_t slot = first; slot < std::min(first + window_blocks, block_count); ++slot) {
      const int64_t begin = blocks(slot) * kBlock;
      for (int64_t row = begin; row < std::min(begin + kBlock, size); ++row) rows.push_back(row);
    }
    const Permutation inside(static_cast<int64_t>(rows.size()), RandomKey::of(model_seed, "order of rows"),
                             epoch_salt + static_cast<uint64_t>(window));
    for (size_t i = 0; i < rows.size(); ++i) {
      result.push_back(rows[static_cast<size_t>(inside(static_cast<int64_t>(i)))]);
    }
  }
  return result;
}

TEST(SampleOrder, IsAPermutationInEveryEpoch) {
  for (const int64_t size : kSizes) {
    const SampleOrder order(size, SampleOrder::Kind::kShuffled, 1, 2);
    for (const int64_t epoch : {0, 1, 7}) {
      std::vector<int64_t> rows = epoch_of(order, size, epoch);
      std::sort(rows.begin(), rows.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(rows[static_cast<size_t>(i)], i) << "size " << size;
    }
  }
}

TEST(SampleOrder, IsWhatItsDefinitionSays) {
  for (const int64_t window_blocks : {1, 2, 3, 64}) {
    for (const int64_t size : kSizes) {
      const SampleOrder order(size, SampleOrder::Kind::kShuffled, 5, 6, window_blocks);
      for (const int64_t epoch : {0, 3, 4}) {
        ASSERT_EQ(epoch_of(order, size, epoch), reference_epoch(size, 5, 6, window_blocks, epoch))
            << "size " << size << ", window " << window_blocks << ", epoch " << epoch;
      }
    }
  }
}

TEST(SampleOrder, DoesNotDependOnHowCallsAreCut) {
  for (const int64_t size : {1, 4097, 9000, 5 * 4096 + 3}) {
    const SampleOrder order(size, SampleOrder::Kind::kShuffled, 1, 2, 2);
    const std::vector<int64_t> whole = epoch_of(order, size, 2);
    for (const int64_t batch : {1, 64, 1000, 4096, 8191}) {
      if (batch == 1 && size > 4097) continue;
      for (int64_t begin = 0; begin < size; begin += batch) {
        std::vector<int64_t> rows;
        order.rows(2, begin, std::min(batch, size - begin), rows);
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), whole.begin() + begin)) << "size " << size << ", at " << begin;
      }
    }
  }
}

TEST(SampleOrder, DiffersBetweenEpochsAndModelsButModelsShareTheirBlocks) {
  const int64_t size = 10 * kBlock;
  const SampleOrder order(size, SampleOrder::Kind::kShuffled, 1, 2, 2),
      other(size, SampleOrder::Kind::kShuffled, 1, 3, 2);
  const std::vector<int64_t> rows = epoch_of(order, size, 0), other_rows = epoch_of(other, size, 0);
  EXPECT_NE(rows, epoch_of(order, size, 1));
  EXPECT_NE(rows, other_rows);
  for (int64_t begin = 0; begin < size; begin += 2 * kBlock) {
    std::vector<int64_t> window(rows.begin() + begin, rows.begin() + begin + 2 * kBlock);
    std::vector<int64_t> other_window(other_rows.begin() + begin, other_rows.begin() + begin + 2 * kBlock);
    std::sort(window.begin(), window.end());
    std::sort(other_window.begin(), other_window.end());
    EXPECT_EQ(window, other_window) << "window at " << begin;
  }
}

TEST(SampleOrder, KeepsTheOrderOfRowsWhenSequential) {
  const SampleOrder order(9000, SampleOrder::Kind::kSequential, 1, 2);
  std::vector<int64_t> expected(9000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(epoch_of(order, 9000, 5), expected);
}

TEST(SampleOrder, RefusesPositionsOutsideTheEpoch) {
  const SampleOrder order(10, SampleOrder::Kind::kShuffled, 1, 2);
  std::vector<int64_t> rows;
  EXPECT_THROW(order.rows(0, 5, 6, rows), std::out_of_range);
  EXPECT_THROW(order.rows(0, -1, 2, rows), std::out_of_range);
  order.rows(0, 10, 0, rows);
  EXPECT_TRUE(rows.empty());
}

// The blocks of a window are those that its rows come from.
TEST(SampleOrder, TellsTheBlockOfASlot) {
  for (const int64_t size : {int64_t{1}, int64_t{9000}, 5 * kBlock}) {
    const SampleOrder order(size, SampleOrder::Kind::kShuffled, 1, 2, /*window_blocks=*/1);
    int64_t position = 0;
    for (int64_t slot = 0; slot < order.block_count(); ++slot) {
      const auto [begin, end] = order.indices_of(order.block_at(3, slot));
      std::vector<int64_t> rows;
      order.rows(3, position, end - begin, rows);
      EXPECT_EQ(std::ranges::min(rows), begin) << "size " << size << ", slot " << slot;
      EXPECT_EQ(std::ranges::max(rows), end - 1) << "size " << size << ", slot " << slot;
      position += end - begin;
    }
    EXPECT_EQ(position, size);
  }
}

// A batch must not cost what an epoch costs: no table over all blocks is made.
TEST(SampleOrder, CostsLittlePerRow) {
  const SampleOrder order(int64_t{1} << 36, SampleOrder::Kind::kShuffled, 1, 2);
  std::vector<int64_t> rows;
  const auto start = std::chrono::steady_clock::now();
  constexpr int64_t kBatches = 2000, kBatch = 64;
  for (int64_t batch = 0; batch < kBatches; ++batch) order.rows(3, batch * 1000003, kBatch, rows);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  const double nanoseconds = taken.count() / (kBatches * kBatch);
  RecordProperty("nanoseconds_per_row", std::to_string(nanoseconds));
  EXPECT_LT(nanoseconds, 5000);  // some 50 in a release build
}

std::vector<int64_t> rows_of(const Split& split) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < split.size(); ++i) rows.push_back(split.row(i));
  return rows;
}

TEST(Split, PartsPartitionTheRowsAndHonourTheFraction) {
  for (const int64_t size : {0, 1, 9, 4095, 4096, 4097, 9000, 3 * 4096, 3 * 4096 * 64 + 5}) {
    for (const double fraction : {0.0, 0.0001, 0.1, 0.5, 0.999}) {
      const Split kept(size, fraction, 3, Split::Part::kKept), held_out(size, fraction, 3, Split::Part::kHeldOut);
      int64_t expected = 0;
      for (int64_t begin = 0; begin < size; begin += kBlock) {
        expected += static_cast<int64_t>(std::round(fraction * static_cast<double>(std::min(kBlock, size - begin))));
      }
      EXPECT_EQ(held_out.size(), expected) << "size " << size << ", fraction " << fraction;
      std::vector<int64_t> rows = rows_of(kept);
      const std::vector<int64_t> others = rows_of(held_out);
      rows.insert(rows.end(), others.begin(), others.end());
      std::sort(rows.begin(), rows.end());
      ASSERT_EQ(static_cast<int64_t>(rows.size()), size);
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(rows[static_cast<size_t>(i)], i);
    }
  }
}

TEST(Split, HoldsOutTheSameShareOfEveryBlock) {
  const Split held_out(3 * kBlock, 0.25, 3, Split::Part::kHeldOut);
  std::vector<int64_t> counts(3);
  for (const int64_t row : rows_of(held_out)) ++counts[static_cast<size_t>(row / kBlock)];
  EXPECT_EQ(counts, (std::vector<int64_t>{1024, 1024, 1024}));
}

TEST(Split, DependsOnTheSeed) {
  EXPECT_NE(rows_of(Split(1000, 0.3, 1, Split::Part::kHeldOut)), rows_of(Split(1000, 0.3, 2, Split::Part::kHeldOut)));
}

TEST(Split, KeepsAllRowsInOrderAsAWhole) {
  const Split all(10, 0.5, 1, Split::Part::kAll);
  EXPECT_EQ(all.size(), 10);
  EXPECT_EQ(all.row(7), 7);
}

TEST(Split, TellsWhichRowsItsPartsLieAmong) {
  const int64_t size = 3 * kBlock + 100;
  for (const Split::Part part : {Split::Part::kAll, Split::Part::kKept, Split::Part::kHeldOut}) {
    const Split split(size, 0.25, 3, part);
    const std::vector<int64_t> rows = rows_of(split);
    for (int64_t begin = 0; begin < split.size(); begin += 1000) {
      const int64_t end = std::min(begin + 1500, split.size());
      const auto [first, last] = split.rows_around(begin, end);
      const auto [least, greatest] = std::minmax_element(rows.begin() + begin, rows.begin() + end);
      EXPECT_TRUE(0 <= first && first <= *least && *least - first < kBlock) << first << " " << *least;
      EXPECT_TRUE(*greatest < last && last <= size && last - *greatest <= kBlock) << last << " " << *greatest;
    }
  }
}

TEST(Split, RefusesAFractionOfOne) {
  EXPECT_THROW(Split(10, 1.0, 1, Split::Part::kKept), std::invalid_argument);
  EXPECT_THROW(Split(10, -0.1, 1, Split::Part::kKept), std::invalid_argument);
}

}  // namespace
}  // namespace tutti::data
