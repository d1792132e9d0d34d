// Turns one stored row into normalised, augmented floats.
#ifndef TUTTI_DATA_GATHER_H
#define TUTTI_DATA_GATHER_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/data_set.h"
#include "data/field.h"

namespace tutti::data {

/// What augmentation does to one row: a pure function of (key, epoch, row), the same however rows are grouped.
struct RowTransform {
  bool flip = false;
  int64_t shift_down = 0, shift_right = 0;  ///< of the cut-out against the unpadded row, in [-crop, crop]

  /// Philox counter: (epoch, row's low word, row's high word, 0); word 0 decides the flip (top bit), words 1 and 2 the
  /// shifts.
  static RowTransform of(const Augmentation& augmentation, AugmentationKey key, int64_t row);
};

/// Converts rows of one field. Each element x becomes (x - mean) / deviation of its channel, computed in Real; mean and
/// deviation are in stored units (for uint8 pixels between 0 and 255). A crop pads with zeros as stored, before
/// normalisation, so the border looks like black pixels; crop first, then flip, then normalise, then noise.
/// Real is float or double.
template <class Real>
class RowConverter {
 public:
  /// Throws DataError when the field's shape does not allow the augmentation, or its means do not fit its shape.
  RowConverter(const Field& field, const Augmentation& augmentation, AugmentationKey key);

  /// `stored`: the row's bytes; `row`: its global number; `out`: row_elements() values.
  void operator()(const std::byte* stored, int64_t row, std::span<Real> out);

 private:
  const std::byte* transformed(const std::byte* stored, const RowTransform& transform);
  void add_noise(int64_t row, std::span<Real> out) const;

  ElementType type_;
  Augmentation augmentation_;
  AugmentationKey key_;
  int64_t planes_ = 1, height_ = 1, width_ = 1;
  int64_t channel_elements_ = 0;
  std::vector<Real> mean_, deviation_;  // one per channel
  std::vector<std::byte> moved_;        // the row after flip and crop
};

}  // namespace tutti::data

#endif
