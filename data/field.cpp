// Names and sizes of element types and fields.
#include "data/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>
#include <type_traits>

#include "data/data_error.h"

namespace tutti::data {

int64_t size_bytes(ElementType type) {
  return with_element_type(type, [](auto value) { return static_cast<int64_t>(sizeof(value)); });
}

std::string name_of(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      break;
  }
  return "float64";
}

bool is_integer(ElementType type) {
  return with_element_type(type, [](auto value) { return std::is_integral_v<decltype(value)>; });
}

int64_t Field::row_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string describe(const Field& field) {
  return fmt::format("{} [{}]", name_of(field.type), fmt::join(field.shape, ", "));
}

int64_t checked_bytes(const Field& field, int64_t row_count, const std::string& place) {
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t bytes = size_bytes(field.type);
  bool fits = row_count <= kMost;
  const auto multiply = [&](int64_t size) {
    fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes) && bytes <= kMost;
  };
  for (const int64_t size : field.shape) multiply(size);
  multiply(row_count);
  if (!fits) {
    throw DataError(
        fmt::format("{}: expected at most 2^56 bytes of rows, found {} rows of {}: the file is damaged; copy or make "
                    "it again",
                    place, row_count, describe(field)));
  }
  return bytes;
}

}  // namespace tutti::data
