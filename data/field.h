// A field: one column of a data set, its element type and what is known about its values.
#ifndef TUTTI_DATA_FIELD_H
#define TUTTI_DATA_FIELD_H

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::data {

enum class ElementType { kUint8, kInt8, kInt16, kInt32, kInt64, kFloat32, kFloat64 };

int64_t size_bytes(ElementType type);
std::string name_of(ElementType type);
bool is_integer(ElementType type);

/// Calls `function` with a value of the C++ type that stores `type`, and returns what it returns.
template <class Function>
decltype(auto) with_element_type(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::kUint8:
      return function(uint8_t{});
    case ElementType::kInt8:
      return function(int8_t{});
    case ElementType::kInt16:
      return function(int16_t{});
    case ElementType::kInt32:
      return function(int32_t{});
    case ElementType::kInt64:
      return function(int64_t{});
    case ElementType::kFloat32:
      return function(float{});
    case ElementType::kFloat64:
      break;
  }
  return function(double{});
}

/// One column of a data set: `/inputs/NAME` or `/targets/NAME`.
struct Field {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> shape{};  ///< of one row; empty = a scalar
  std::vector<double> mean{},
      deviation{};                         ///< per channel (shape[0]) or one for all; empty = values are used as stored
  std::vector<std::string> class_names{};  ///< of an integer target, where the importer knew them
  int64_t class_count = 0;                 ///< of an integer target; 0 = unknown
  int64_t row_elements() const;
  int64_t row_bytes() const { return row_elements() * size_bytes(type); }
  bool operator==(const Field&) const = default;
};

/// "uint8 [1, 28, 28]", for messages.
std::string describe(const Field& field);

/// The bytes of `row_count` rows of a field whose shape and row count a file told. Throws DataError naming `place`, the
/// rows and their shape where a size is negative or there are more than 2^56 rows or bytes: below that, row_elements(),
/// row_bytes() and sums over columns and shards are exact.
int64_t checked_bytes(const Field& field, int64_t row_count, const std::string& place);

}  // namespace tutti::data

#endif
