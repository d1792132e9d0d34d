// What the reader and the writer of safetensors files must agree on.
#include "src/train/safetensors_format.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tutti::train::safetensors_format {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

struct TypeName {
  at::ScalarType type;
  std::string_view name;
};

constexpr std::array<TypeName, 10> kTypeNames = {{{at::kDouble, "F64"},
                                                  {at::kFloat, "F32"},
                                                  {at::kHalf, "F16"},
                                                  {at::kBFloat16, "BF16"},
                                                  {at::kLong, "I64"},
                                                  {at::kInt, "I32"},
                                                  {at::kShort, "I16"},
                                                  {at::kChar, "I8"},
                                                  {at::kByte, "U8"},
                                                  {at::kBool, "BOOL"}}};

}  // namespace

std::optional<std::string_view> type_name(at::ScalarType type) {
  const auto* entry = std::ranges::find(kTypeNames, type, &TypeName::type);
  if (entry == kTypeNames.end()) return std::nullopt;
  return entry->name;
}

std::optional<at::ScalarType> type_of_name(std::string_view name) {
  const auto* entry = std::ranges::find(kTypeNames, name, &TypeName::name);
  if (entry == kTypeNames.end()) return std::nullopt;
  return entry->type;
}

std::string type_names() {
  std::string names;
  for (const TypeName& entry : kTypeNames) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

}  // namespace tutti::train::safetensors_format
