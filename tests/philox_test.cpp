// Philox against published vectors; keyed permutations against their definition and against uniformity.
#include "data/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "data/fnv_hash.h"

namespace tutti::data {
namespace {

using testing::ElementsAre;

// Random123, file kat_vectors, lines philox4x32 10.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_THAT(philox({0}, {0, 0, 0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox({~uint64_t{0}}, {~0u, ~0u, ~0u, ~0u}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x299f31d0a4093822}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// The vectors of the FNV reference page (64-bit FNV-1a).
TEST(FnvHash, GivesThePublishedAnswers) {
  EXPECT_EQ(fnv_hash(""), 0xcbf29ce484222325);
  EXPECT_EQ(fnv_hash("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv_hash("foobar"), 0x85944171f73967e8);
  EXPECT_EQ(fnv_hash("bar", fnv_hash("foo")), fnv_hash("foobar"));
}

TEST(RandomKey, IsTheSeedXorTheFnvHashOfThePurpose) {
  EXPECT_EQ(RandomKey::of(0x1234, "foobar").value, 0x85944171f73967e8 ^ 0x1234);
}

TEST(Uniform, StaysBelowOneAndUsesTheUpperBits) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(0x80000000), 0.5f);
  EXPECT_EQ(uniform_float(~0u), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_double(0x80000000, 0), 0.5);
  EXPECT_EQ(uniform_double(~0u, ~0u), 1.0 - 0x1p-53);
}

std::vector<int64_t> values_of(int64_t size, RandomKey key, uint64_t salt) {
  const Permutation permutation(size, key, salt);
  std::vector<int64_t> values(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = permutation(i);
  return values;
}

void expect_bijective(int64_t size, RandomKey key, uint64_t salt) {
  std::vector<int64_t> values = values_of(size, key, salt);
  const Permutation permutation(size, key, salt);
  for (int64_t i = 0; i < size; ++i) {
    ASSERT_EQ(permutation.inverse(values[static_cast<size_t>(i)]), i) << "size " << size;
  }
  std::sort(values.begin(), values.end());
  for (int64_t i = 0; i < size; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i) << "size " << size;
}

TEST(Permutation, IsBijectiveForEverySize) {
  for (int64_t size = 1; size <= 300; ++size) {
    for (uint64_t salt = 0; salt < 5; ++salt) expect_bijective(size, {42}, salt);
  }
  for (const int64_t size : {4095, 4096, 4097, 65535, 65536, 65537, 1000003, 4194305}) expect_bijective(size, {7}, 9);
}

TEST(Permutation, StaysInsideHugeSizesAndInverts) {
  for (const int64_t size : {int64_t{1} << 40, (int64_t{1} << 40) + 1, (int64_t{1} << 62) - 5, int64_t{1} << 62}) {
    const Permutation permutation(size, {3}, 0);
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t value = permutation(i * (size / 1000));
      ASSERT_GE(value, 0);
      ASSERT_LT(value, size);
      ASSERT_EQ(permutation.inverse(value), i * (size / 1000));
    }
  }
}

TEST(Permutation, DependsOnKeySaltAndSize) {
  const std::vector<int64_t> reference = values_of(1000, {1}, 1);
  EXPECT_NE(values_of(1000, {2}, 1), reference);
  EXPECT_NE(values_of(1000, {uint64_t{1} << 40 | 1}, 1), reference);
  EXPECT_NE(values_of(1000, {1}, 2), reference);
  EXPECT_NE(values_of(1000, {1}, uint64_t{1} << 40 | 1), reference);
  EXPECT_EQ(values_of(1000, {1}, 1), reference);
}

// Chi-square over `cells` equally likely cells, in standard deviations from its expectation.
double deviations(const std::vector<int64_t>& counts, double degrees) {
  const double total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const int64_t count : counts) {
    chi_square += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
  }
  return (chi_square - degrees) / std::sqrt(2 * degrees);
}

TEST(Permutation, ReachesAllOrdersOfAFewRowsEquallyOften) {
  for (const int64_t size : {2, 3, 4, 5, 6}) {
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::map<std::vector<int64_t>, size_t> number;
    do number.emplace(order, number.size());
    while (std::next_permutation(order.begin(), order.end()));
    std::vector<int64_t> counts(number.size());
    for (uint64_t salt = 0; salt < 200 * number.size(); ++salt) ++counts[number.at(values_of(size, {11}, salt))];
    EXPECT_LT(std::abs(deviations(counts, static_cast<double>(counts.size() - 1))), 4) << "size " << size;
  }
}

TEST(Permutation, TakesEveryIndexToEveryPlaceEquallyOften) {
  for (const int64_t size : {7, 16, 64, 100, 256}) {
    std::vector<int64_t> counts(static_cast<size_t>(size * size));
    for (uint64_t salt = 0; salt < 2000; ++salt) {
      const std::vector<int64_t> values = values_of(size, {5}, salt);
      for (int64_t i = 0; i < size; ++i) ++counts[static_cast<size_t>(i * size + values[static_cast<size_t>(i)])];
    }
    // Rows and columns of the table are fixed: (size - 1)^2 degrees of freedom, scaled by size / (size - 1).
    const double degrees = static_cast<double>((size - 1) * size);
    EXPECT_LT(std::abs(deviations(counts, degrees)), 5) << "size " << size;
  }
}

// Neighbours must not stay neighbours: their distance is uniform over the circle.
TEST(Permutation, SeparatesNeighbours) {
  constexpr int64_t kSize = 4096, kCells = 64;
  std::vector<int64_t> counts(kCells);
  for (uint64_t salt = 0; salt < 20; ++salt) {
    const std::vector<int64_t> values = values_of(kSize, {17}, salt);
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      ++counts[static_cast<size_t>((values[i + 1] - values[i] + kSize) % kSize / (kSize / kCells))];
    }
  }
  EXPECT_LT(std::abs(deviations(counts, kCells - 1)), 5);
}

}  // namespace
}  // namespace tutti::data
