// Conversion and augmentation of rows against plain loops over whole images.
#include "data/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/shard_files.h"

namespace tutti::data {
namespace {

using testing::HasSubstr;

constexpr AugmentationKey kKey{{0x123456789abcdef}, 3};

template <class Real, class Stored>
std::vector<Real> converted(const Field& field, const std::vector<Stored>& stored, const Augmentation& augmentation,
                            int64_t row, AugmentationKey key = kKey) {
  RowConverter<Real> convert(field, augmentation, key);
  std::vector<Real> out(stored.size());
  convert(reinterpret_cast<const std::byte*>(stored.data()), row, std::span(out));
  return out;
}

template <class Stored>
void expect_normalised(ElementType type, const std::vector<Stored>& stored) {
  const Field field{.name = "x", .type = type, .shape = {2, 3}, .mean = {1.5, -2}, .deviation = {0.3, 7}};
  const std::vector<float> floats = converted<float>(field, stored, {}, 0);
  const std::vector<double> doubles = converted<double>(field, stored, {}, 0);
  Field raw = field;
  raw.mean.clear();
  raw.deviation.clear();
  const std::vector<double> as_stored = converted<double>(raw, stored, {}, 0);
  for (size_t i = 0; i < stored.size(); ++i) {
    const double mean = field.mean[i / 3], deviation = field.deviation[i / 3];
    EXPECT_EQ(doubles[i], (static_cast<double>(stored[i]) - mean) / deviation);
    EXPECT_EQ(floats[i], (static_cast<float>(stored[i]) - static_cast<float>(mean)) / static_cast<float>(deviation));
    EXPECT_EQ(as_stored[i], static_cast<double>(stored[i]));
  }
}

TEST(RowConverter, NormalisesEveryElementTypeByChannel) {
  expect_normalised<uint8_t>(ElementType::kUint8, {0, 1, 127, 128, 254, 255});
  expect_normalised<int8_t>(ElementType::kInt8, {-128, -1, 0, 1, 5, 127});
  expect_normalised<int16_t>(ElementType::kInt16, {-32768, -1, 0, 1, 5, 32767});
  expect_normalised<int32_t>(ElementType::kInt32, {-70000, -1, 0, 1, 5, 70000});
  expect_normalised<int64_t>(ElementType::kInt64, {-70000, -1, 0, 1, 5, int64_t{1} << 52});
  expect_normalised<float>(ElementType::kFloat32, {-1e30f, -0.1f, 0, 1, 5, 1e-30f});
  expect_normalised<double>(ElementType::kFloat64, {-1e30, -0.1, 0, 1, 5, 1e-30});
}

TEST(RowConverter, UsesOneMeanForAllChannels) {
  const Field field{.name = "x", .type = ElementType::kUint8, .shape = {2, 2}, .mean = {10}, .deviation = {4}};
  EXPECT_EQ(converted<float>(field, std::vector<uint8_t>{10, 14, 6, 12}, {}, 0), (std::vector<float>{0, 1, -1, 0.5f}));
}

// Pads, cuts out and mirrors as whole images, one element at a time.
template <class Stored>
std::vector<Stored> reference_transform(const std::vector<Stored>& image, int64_t planes, int64_t height, int64_t width,
                                        const RowTransform& transform) {
  std::vector<Stored> out;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_y = y + transform.shift_down;
        const int64_t from_x = (transform.flip ? width - 1 - x : x) + transform.shift_right;
        const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        out.push_back(inside ? image[static_cast<size_t>((plane * height + from_y) * width + from_x)] : Stored{0});
      }
    }
  }
  return out;
}

template <class Stored>
void expect_moved_like_reference(ElementType type) {
  const Field field{.name = "x", .type = type, .shape = {2, 5, 7}};
  std::vector<Stored> image(70);
  std::iota(image.begin(), image.end(), Stored{1});
  for (const int64_t crop : {0, 1, 4, 9}) {
    for (const bool flip : {false, true}) {
      for (int64_t row = 0; row < 40; ++row) {
        const Augmentation augmentation{.flip = flip, .crop = crop};
        const RowTransform transform = RowTransform::of(augmentation, kKey, row);
        const std::vector<Stored> expected = reference_transform(image, 2, 5, 7, transform);
        const std::vector<double> found = converted<double>(field, image, augmentation, row);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), found.begin()))
            << "row " << row << ", flip " << transform.flip << ", down " << transform.shift_down << ", right "
            << transform.shift_right;
      }
    }
  }
}

TEST(RowConverter, FlipsAndCropsLikeWholeImages) {
  expect_moved_like_reference<uint8_t>(ElementType::kUint8);
  expect_moved_like_reference<int16_t>(ElementType::kInt16);
  expect_moved_like_reference<float>(ElementType::kFloat32);
  expect_moved_like_reference<double>(ElementType::kFloat64);
}

TEST(RowConverter, PadsWithStoredZerosBeforeNormalisation) {
  const Field field{.name = "x", .type = ElementType::kUint8, .shape = {1, 1}, .mean = {50}, .deviation = {10}};
  int64_t padded = 0;
  for (int64_t row = 0; row < 200; ++row) {
    const float value = converted<float>(field, std::vector<uint8_t>{90}, {.crop = 1}, row)[0];
    EXPECT_TRUE(value == 4 || value == -5) << value;
    padded += value == -5;
  }
  EXPECT_GT(padded, 150);  // 8 of 9 places
}

TEST(RowTransform, TakesEveryPlaceEquallyOften) {
  const Augmentation augmentation{.flip = true, .crop = 2};
  std::vector<double> counts(2 * 5 * 5);
  constexpr int64_t kRows = 50000;
  for (int64_t row = 0; row < kRows; ++row) {
    const RowTransform transform = RowTransform::of(augmentation, kKey, row);
    ASSERT_LE(std::abs(transform.shift_down), 2);
    ASSERT_LE(std::abs(transform.shift_right), 2);
    ++counts[static_cast<size_t>((transform.flip ? 25 : 0) + (transform.shift_down + 2) * 5 + transform.shift_right +
                                 2)];
  }
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - kRows / 50.0) * (count - kRows / 50.0) / (kRows / 50.0);
  EXPECT_LT(chi_square, 49 + 4 * std::sqrt(2 * 49.0));
}

TEST(RowTransform, DependsOnKeyEpochAndRowAlone) {
  const Augmentation augmentation{.flip = true, .crop = 1000};
  const RowTransform transform = RowTransform::of(augmentation, kKey, 5);
  const auto shift = [&](AugmentationKey key, int64_t row) {
    return RowTransform::of(augmentation, key, row).shift_down;
  };
  EXPECT_EQ(shift(kKey, 5), transform.shift_down);
  EXPECT_NE(shift(kKey, 6), transform.shift_down);
  EXPECT_NE(shift(kKey, int64_t{1} << 32 | 5), transform.shift_down);
  EXPECT_NE(shift({kKey.key, 4}, 5), transform.shift_down);
  EXPECT_NE(shift({{77}, 3}, 5), transform.shift_down);
}

TEST(RowConverter, AddsGaussianNoiseAfterNormalisation) {
  const Field field{.name = "x", .type = ElementType::kUint8, .shape = {1001}, .mean = {3}, .deviation = {2}};
  const std::vector<uint8_t> stored(1001, 7);
  std::vector<double> noise;
  for (int64_t row = 0; row < 200; ++row) {
    for (const double value : converted<double>(field, stored, {.noise = 0.5}, row)) noise.push_back((value - 2) / 0.5);
  }
  const auto count = static_cast<double>(noise.size());
  double mean = 0, square = 0, cube = 0, fourth = 0, neighbours = 0;
  int64_t within_one = 0;
  for (size_t i = 0; i < noise.size(); ++i) {
    mean += noise[i] / count;
    square += noise[i] * noise[i] / count;
    cube += std::pow(noise[i], 3) / count;
    fourth += std::pow(noise[i], 4) / count;
    if (i > 0) neighbours += noise[i] * noise[i - 1] / count;
    within_one += std::abs(noise[i]) < 1;
  }
  // Five standard errors of each estimate.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(cube, 0, 5 * std::sqrt(15 / count));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / count));
  EXPECT_NEAR(neighbours, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(static_cast<double>(within_one) / count, std::erf(1 / std::sqrt(2.0)), 5 * std::sqrt(0.22 / count));
}

TEST(RowConverter, RefusesWhatTheShapeDoesNotAllow) {
  const Field scalar{.name = "s", .type = ElementType::kFloat32}, line{.name = "l", .shape = {5}};
  EXPECT_THAT(message_of([&] { RowConverter<float>(scalar, {.flip = true}, kKey); }), HasSubstr("field 's'"));
  EXPECT_THAT(message_of([&] { RowConverter<float>(line, {.crop = 1}, kKey); }), HasSubstr("crop of 2 or more"));
  const Field odd{.name = "o", .shape = {5}, .mean = {1, 2}, .deviation = {1, 1}};
  EXPECT_THAT(message_of([&] { RowConverter<float>(odd, {}, kKey); }), HasSubstr("2 means"));
}

TEST(Gather, GivesTheSameValuesHoweverRowsAreGroupedAndRead) {
  const TemporaryFolder folder;
  write_shard(folder / "a-0.h5", {.row_count = 5000, .mean = {100, 120}, .deviation = {60, 70}});
  write_shard(folder / "a-1.h5", {.first_row = 5000, .row_count = 700, .mean = {100, 120}, .deviation = {60, 70}});
  const Augmentation augmentation{.flip = true, .crop = 1, .noise = 0.1};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 300; ++i) rows.push_back(i * 7919 % 5700);
  const auto gather_with = [&](ReadOptions options, size_t group) {
    const auto data = DataSet::open({folder / "a-*.h5"}, options);
    std::vector<float> out(rows.size() * 24);
    for (size_t begin = 0; begin < rows.size(); begin += group) {
      const size_t count = std::min(group, rows.size() - begin);
      data->gather(data->inputs()[0], std::span(rows).subspan(begin, count), augmentation, kKey,
                   std::span(out).subspan(begin * 24, count * 24));
    }
    return out;
  };
  const std::vector<float> reference = gather_with({}, 300);
  for (const size_t group : {1, 7, 64}) EXPECT_EQ(gather_with({}, group), reference) << "group " << group;
  EXPECT_EQ(gather_with({.access = ReadOptions::Access::kPread}, 64), reference);
  EXPECT_EQ(gather_with({.access = ReadOptions::Access::kStream}, 64), reference);
  EXPECT_NE(gather_with({}, 300)[0], 0.0f);
}

TEST(Gather, TakesTheNormalisationOfTheFieldItIsGiven) {
  const TemporaryFolder folder;
  write_shard(folder / "a.h5", {.row_count = 10, .mean = {100}, .deviation = {60}});
  const auto data = DataSet::open({folder / "a.h5"});
  Field field = data->inputs()[0];
  const std::vector<int64_t> rows = {4};
  std::vector<float> out(24);
  data->gather(field, rows, {}, {}, std::span(out));
  EXPECT_EQ(out[5], (static_cast<float>(pixel_of(4, 5)) - 100.0f) / 60.0f);
  field.mean.clear();
  field.deviation.clear();
  data->gather(field, rows, {}, {}, std::span(out));
  EXPECT_EQ(out[5], static_cast<float>(pixel_of(4, 5)));
}

}  // namespace
}  // namespace tutti::data
