// Conversion, normalisation and augmentation of rows.
#include "data/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tutti::data {
namespace {

// Uniform in [-crop, crop]. The bias of the multiplication is below 2^-20 for any crop under 2,048.
int64_t shift_of(uint32_t word, int64_t crop) {
  return static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(2 * crop + 1) >> 32) - crop;
}

PhiloxWords counter_of(AugmentationKey key, int64_t row, uint32_t draw) {
  return {key.epoch, static_cast<uint32_t>(row), static_cast<uint32_t>(static_cast<uint64_t>(row) >> 32), draw};
}

template <class Stored, class Real>
void convert(const Stored* __restrict stored, int64_t count, Real* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Real>(stored[i]);
}

template <class Stored, class Real>
void convert(const Stored* __restrict stored, int64_t count, Real mean, Real deviation, Real* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = (static_cast<Real>(stored[i]) - mean) / deviation;
}

// Copies a plane moved by the transform; what comes from outside is zero. Word has the size of an element.
template <class Word>
void move_plane(const Word* __restrict from, int64_t height, int64_t width, const RowTransform& transform,
                Word* __restrict to) {
  const int64_t first = std::clamp<int64_t>(-transform.shift_right, 0, width);
  const int64_t last = std::clamp<int64_t>(width - transform.shift_right, 0, width);
  for (int64_t y = 0; y < height; ++y, to += width) {
    const int64_t source_y = y + transform.shift_down;
    std::fill(to, to + width, Word{0});
    if (source_y < 0 || source_y >= height || first >= last) continue;
    const Word* line = from + source_y * width + transform.shift_right;
    if (transform.flip) {
      std::reverse_copy(line + first, line + last, to + (width - last));
    } else {
      std::copy(line + first, line + last, to + first);
    }
  }
}

}  // namespace

RowTransform RowTransform::of(const Augmentation& augmentation, AugmentationKey key, int64_t row) {
  if (!augmentation.flip && augmentation.crop == 0) return {};
  const PhiloxWords words = philox(key.key, counter_of(key, row, 0));
  return {augmentation.flip && words[0] >> 31 != 0, shift_of(words[1], augmentation.crop),
          shift_of(words[2], augmentation.crop)};
}

template <class Real>
RowConverter<Real>::RowConverter(const Field& field, const Augmentation& augmentation, AugmentationKey key)
    : type_(field.type), augmentation_(augmentation), key_(key) {
  const size_t rank = field.shape.size();
  if ((augmentation.flip && rank < 1) || (augmentation.crop > 0 && rank < 2) || augmentation.crop < 0) {
    throw DataError(
        fmt::format("field '{}': flip needs rows of 1 dimension or more, crop of 2 or more (and a padding of "
                    "at least 0): found {} with crop {}",
                    field.name, describe(field), augmentation.crop));
  }
  const int64_t elements = field.row_elements();
  if (rank >= 1) width_ = field.shape[rank - 1];
  if (rank >= 2) height_ = field.shape[rank - 2];
  planes_ = elements == 0 ? 0 : elements / (height_ * width_);
  const auto channels = static_cast<int64_t>(field.mean.size());
  if (field.deviation.size() != field.mean.size() || (channels > 1 && elements % channels != 0)) {
    throw DataError(fmt::format("field '{}': {} means and {} deviations do not fit {}", field.name, channels,
                                field.deviation.size(), describe(field)));
  }
  channel_elements_ = channels == 0 ? elements : elements / channels;
  for (const double mean : field.mean) mean_.push_back(static_cast<Real>(mean));
  for (const double deviation : field.deviation) deviation_.push_back(static_cast<Real>(deviation));
  if (augmentation.flip || augmentation.crop > 0) moved_.resize(static_cast<size_t>(field.row_bytes()));
}

template <class Real>
const std::byte* RowConverter<Real>::transformed(const std::byte* stored, const RowTransform& transform) {
  if (!transform.flip && transform.shift_down == 0 && transform.shift_right == 0) return stored;
  const auto move = [&](auto word) {
    using Word = decltype(word);
    const auto* from = reinterpret_cast<const Word*>(stored);
    auto* to = reinterpret_cast<Word*>(moved_.data());
    for (int64_t plane = 0; plane < planes_; ++plane) {
      move_plane(from + plane * height_ * width_, height_, width_, transform, to + plane * height_ * width_);
    }
  };
  with_element_type(type_, move);
  return moved_.data();
}

template <class Real>
void RowConverter<Real>::operator()(const std::byte* stored, int64_t row, std::span<Real> out) {
  const std::byte* moved = transformed(stored, RowTransform::of(augmentation_, key_, row));
  const auto convert_row = [&](auto value) {
    using Stored = decltype(value);
    const auto* from = reinterpret_cast<const Stored*>(moved);
    if (mean_.empty()) return convert(from, static_cast<int64_t>(out.size()), out.data());
    for (size_t channel = 0; channel < mean_.size(); ++channel) {
      const int64_t begin = static_cast<int64_t>(channel) * channel_elements_;
      convert(from + begin, channel_elements_, mean_[channel], deviation_[channel], out.data() + begin);
    }
  };
  with_element_type(type_, convert_row);
  if (augmentation_.noise > 0) add_noise(row, out);
}

// Box and Muller: two Gaussian values from two uniform ones. Element e of the row takes value e % 4 of draw 1 + e / 4.
template <class Real>
void RowConverter<Real>::add_noise(int64_t row, std::span<Real> out) const {
  for (size_t first = 0; first < out.size(); first += 4) {
    const PhiloxWords words = philox(key_.key, counter_of(key_, row, static_cast<uint32_t>(1 + first / 4)));
    double values[4];
    for (size_t pair = 0; pair < 2; ++pair) {
      const double uniform = (static_cast<double>(words[2 * pair]) + 0.5) * 0x1p-32;  // in (0, 1): the log is finite
      const double radius = augmentation_.noise * std::sqrt(-2 * std::log(uniform));
      const double angle = 2 * std::numbers::pi * 0x1p-32 * static_cast<double>(words[2 * pair + 1]);
      values[2 * pair] = radius * std::cos(angle);
      values[2 * pair + 1] = radius * std::sin(angle);
    }
    for (size_t i = 0; i < std::min<size_t>(4, out.size() - first); ++i) {
      out[first + i] += static_cast<Real>(values[i]);
    }
  }
}

template class RowConverter<float>;
template class RowConverter<double>;

}  // namespace tutti::data
