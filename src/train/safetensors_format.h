// What the reader and the writer of safetensors files must agree on.
#ifndef TUTTI_SRC_TRAIN_SAFETENSORS_FORMAT_H
#define TUTTI_SRC_TRAIN_SAFETENSORS_FORMAT_H

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tutti::train::safetensors_format {

/// The file's first bytes: the length of the header, little-endian.
inline constexpr int64_t kLengthBytes = 8;
/// The greatest header that is read or written.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;
/// Where the data starts is a multiple of this; the header is filled up with spaces.
inline constexpr int64_t kDataAlignment = 64;
/// The key of the map of strings beside the tensors.
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// "F32" for kFloat, ...; none for a type without a name in the format.
std::optional<std::string_view> type_name(at::ScalarType type);
/// The inverse of type_name.
std::optional<at::ScalarType> type_of_name(std::string_view name);
/// All names, for messages.
std::string type_names();

/// The bytes of a contiguous tensor.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

}  // namespace tutti::train::safetensors_format

#endif
