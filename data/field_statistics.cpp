// Moments of values, merged row by row.
#include "data/field_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tutti::data {

int64_t channel_count_of(const Field& field) {
  const bool table = field.shape.size() == 1 && !is_integer(field.type);
  return table || field.shape.size() >= 3 ? std::max<int64_t>(1, field.shape[0]) : 1;
}

bool is_quantity(const Field& field) { return field.type != ElementType::kInt32 && field.type != ElementType::kInt64; }

FieldStatistics::FieldStatistics(const Field& field)
    : field_(field),
      channels_(static_cast<size_t>(channel_count_of(field))),
      least_(std::numeric_limits<double>::infinity()),
      greatest_(-std::numeric_limits<double>::infinity()) {}

// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979).
void FieldStatistics::Moments::merge(const Moments& other) {
  if (other.count == 0) return;
  const double total = count + other.count;
  const double difference = other.mean - mean;
  mean += difference * (other.count / total);
  squares += other.squares + difference * difference * (count * other.count / total);
  count = total;
}

template <class Stored>
FieldStatistics::Moments FieldStatistics::moments_of(const Stored* values, int64_t count, int64_t row) {
  Moments moments;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    if (!std::isfinite(value)) {
      if (!first_non_finite_row_) first_non_finite_row_ = row;
      ++non_finite_count_;
      continue;
    }
    least_ = std::min(least_, value);
    greatest_ = std::max(greatest_, value);
    moments.count += 1;
    sum += value;
  }
  if (moments.count == 0) return moments;
  moments.mean = sum / moments.count;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(values[i]) - moments.mean;
    if (std::isfinite(difference)) moments.squares += difference * difference;
  }
  return moments;
}

void FieldStatistics::add(int64_t count, std::span<const std::byte> rows) {
  const int64_t row_elements = field_.row_elements();
  const int64_t channel_elements = row_elements / static_cast<int64_t>(channels_.size());
  with_element_type(field_.type, [&](auto type) {
    const auto* values = reinterpret_cast<const decltype(type)*>(rows.data());
    for (int64_t row = 0; row < count; ++row) {
      for (Moments& channel : channels_) {
        channel.merge(moments_of(values, channel_elements, row_count_ + row));
        values += channel_elements;
      }
    }
  });
  row_count_ += count;
  value_count_ += count * row_elements;
}

std::vector<double> FieldStatistics::mean() const {
  std::vector<double> means;
  for (const Moments& channel : channels_) means.push_back(channel.mean);
  return means;
}

std::vector<double> FieldStatistics::deviation() const {
  std::vector<double> deviations;
  for (const Moments& channel : channels_) {
    const double variance = channel.count > 0 ? channel.squares / channel.count : 0;
    deviations.push_back(variance > 0 ? std::sqrt(variance) : 1);
  }
  return deviations;
}

}  // namespace tutti::data
