// Mean, deviation and range of a field's values, gathered in one pass.
#ifndef TUTTI_DATA_FIELD_STATISTICS_H
#define TUTTI_DATA_FIELD_STATISTICS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/field.h"

namespace tutti::data {

/// Channels whose mean and deviation are taken apart: shape[0] for rows of three dimensions and more (images) and for
/// rows of one dimension of floats (columns of a table); 1 otherwise.
int64_t channel_count_of(const Field& field);

/// Whether the values are quantities, which it makes sense to normalise: not so int32 and int64, which are indices.
bool is_quantity(const Field& field);

class FieldStatistics {
 public:
  explicit FieldStatistics(const Field& field);

  /// Adds `count` rows.
  void add(int64_t count, std::span<const std::byte> rows);

  /// Per channel, of the finite values. The deviation is that of the population (divided by the count), and 1 where all
  /// values are equal.
  std::vector<double> mean() const;
  std::vector<double> deviation() const;

  double least() const { return least_; }
  double greatest() const { return greatest_; }
  int64_t value_count() const { return value_count_; }
  int64_t non_finite_count() const { return non_finite_count_; }
  std::optional<int64_t> first_non_finite_row() const { return first_non_finite_row_; }

 private:
  // Count, mean and sum of squared differences from the mean.
  struct Moments {
    double count = 0, mean = 0, squares = 0;
    void merge(const Moments& other);
  };
  template <class Stored>
  Moments moments_of(const Stored* values, int64_t count, int64_t row);

  Field field_;
  std::vector<Moments> channels_;
  double least_, greatest_;
  int64_t row_count_ = 0, value_count_ = 0, non_finite_count_ = 0;
  std::optional<int64_t> first_non_finite_row_;
};

}  // namespace tutti::data

#endif
