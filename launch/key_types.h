// Short forms of value types, for the tables of key declarations.
#ifndef TUTTI_LAUNCH_KEY_TYPES_H
#define TUTTI_LAUNCH_KEY_TYPES_H

#include <string>
#include <utility>
#include <vector>

#include "launch/key_declarations.h"

namespace tutti::launch::key_types {

inline Bounds at_least(double low) { return {.low = low}; }
inline Bounds above(double low) { return {.low = low, .low_open = true}; }
inline Bounds closed(double low, double high) { return {.low = low, .high = high}; }   ///< [low, high]
inline Bounds half_open(double low, double high) { return {low, high, false, true}; }  ///< [low, high)

inline ValueType integer(Bounds bounds = {}) { return {.kind = ValueType::Kind::kInteger, .bounds = bounds}; }
/// Of steps, epochs or rows: larger numbers are slips of the pen, and products of two of these fit 64 bits.
inline ValueType count(double low) { return integer(closed(low, 1e9)); }
inline ValueType number(Bounds bounds = {}) { return {.kind = ValueType::Kind::kNumber, .bounds = bounds}; }
inline ValueType integers(Bounds bounds = {}) { return {.kind = ValueType::Kind::kIntegers, .bounds = bounds}; }
inline ValueType numbers(Bounds bounds = {}) { return {.kind = ValueType::Kind::kNumbers, .bounds = bounds}; }
inline ValueType boolean() { return {.kind = ValueType::Kind::kBoolean}; }
inline ValueType text() { return {.kind = ValueType::Kind::kText}; }
inline ValueType texts() { return {.kind = ValueType::Kind::kTexts}; }
inline ValueType bytes(Bounds bounds = at_least(1)) { return {.kind = ValueType::Kind::kBytes, .bounds = bounds}; }
inline ValueType choice(std::vector<std::string> choices) {
  return {.kind = ValueType::Kind::kChoice, .choices = std::move(choices)};
}
inline ValueType nested(std::string what) { return {.kind = ValueType::Kind::kNested, .nested = std::move(what)}; }
inline ValueType or_auto(ValueType type) {
  type.or_auto = true;
  return type;
}

}  // namespace tutti::launch::key_types

#endif
