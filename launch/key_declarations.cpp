// Bounds, value types and look-ups of the key declarations.
#include "launch/key_declarations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace tutti::launch {

bool Bounds::contains(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Bounds::text() const {
  if (std::isinf(low) && std::isinf(high)) return "";
  if (std::isinf(high)) return fmt::format(" {} {}", low_open ? "greater than" : "of at least", low);
  return fmt::format(" in {}{}, {}{}", low_open ? "(" : "[", low, high, high_open ? ")" : "]");
}

std::string ValueType::text() const {
  const std::string suffix = bounds.text() + (or_auto ? ", or auto" : "");
  switch (kind) {
    case Kind::kInteger:
      return "whole number" + suffix;
    case Kind::kNumber:
      return "number" + suffix;
    case Kind::kBoolean:
      return "true or false";
    case Kind::kText:
      return "text";
    case Kind::kBytes:
      return "bytes (8GiB, 512MB, 4096)" + suffix;
    case Kind::kChoice:
      return fmt::format("{}", fmt::join(choices, " or "));
    case Kind::kIntegers:
      return "list of whole numbers" + suffix;
    case Kind::kNumbers:
      return "list of numbers" + suffix;
    case Kind::kTexts:
      return "text or list of texts";
    case Kind::kNested:
      return nested;
  }
  return "";
}

const Key* Block::find(std::string_view key) const {
  for (const Key& candidate : keys) {
    if (candidate.name == key) return &candidate;
  }
  return nullptr;
}

std::vector<std::string> Block::key_names() const {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(key.name);
  return names;
}

}  // namespace tutti::launch
