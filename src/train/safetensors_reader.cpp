// Reads safetensors files, trusting nothing in them.
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

#include "src/train/posix_file.h"
#include "src/train/safetensors.h"
#include "src/train/safetensors_format.h"

namespace tutti::train {
namespace {

namespace format = safetensors_format;
using Json = nlohmann::ordered_json;

/// Where one tensor lies, in bytes from the start of the data.
struct Extent {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Refuses what a header cannot have: a key twice in one object, and objects inside arrays inside objects without end.
class HeaderRules {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, Json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kMaxDepth) throw SafetensorsError(fmt::format("the header is nested deeper than {} levels", kMaxDepth));
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(value.get<std::string>()).second) {
      throw SafetensorsError(fmt::format("the header has the key '{}' twice", value.get<std::string>()));
    }
    return true;
  }

 private:
  static constexpr int kMaxDepth = 4;
  std::vector<std::set<std::string>> keys_;
};

Json read_header(const PosixFile& file, int64_t size_bytes, int64_t& data_begin) {
  if (size_bytes < format::kLengthBytes) {
    throw SafetensorsError(fmt::format("expected at least {} bytes, found {}", format::kLengthBytes, size_bytes));
  }
  uint64_t header_bytes = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > static_cast<uint64_t>(format::kMaxHeaderBytes)) {
    throw SafetensorsError(
        fmt::format("expected a header of at most {} bytes, found {}", format::kMaxHeaderBytes, header_bytes));
  }
  data_begin = format::kLengthBytes + static_cast<int64_t>(header_bytes);
  if (data_begin > size_bytes) {
    throw SafetensorsError(
        fmt::format("expected a header of {} bytes, but the file has only {} bytes", header_bytes, size_bytes));
  }
  std::string text(header_bytes, ' ');
  file.read_at(format::kLengthBytes, std::as_writable_bytes(std::span(text)));
  Json header = Json::parse(text, HeaderRules());
  if (!header.is_object()) throw SafetensorsError("expected the header to be a JSON object");
  return header;
}

/// A list of non-negative integers.
std::vector<int64_t> read_counts(const std::string& name, const Json& entry, const char* key) {
  const auto list = entry.find(key);
  const auto is_count = [](const Json& value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  };
  if (list == entry.end() || !list->is_array() || !std::ranges::all_of(*list, is_count)) {
    throw SafetensorsError(fmt::format("tensor '{}': expected '{}' to be a list of counts, found {}", name, key,
                                       list == entry.end() ? "none" : list->dump().substr(0, 80)));
  }
  return list->get<std::vector<int64_t>>();
}

at::ScalarType read_type(const std::string& name, const Json& entry) {
  const auto text = entry.find("dtype");
  const auto type = text != entry.end() && text->is_string() ? format::type_of_name(text->get<std::string>())
                                                             : std::optional<at::ScalarType>();
  if (!type) {
    throw SafetensorsError(fmt::format("tensor '{}': expected 'dtype' to be one of {}, found {}", name,
                                       format::type_names(),
                                       text == entry.end() ? "none" : text->dump().substr(0, 80)));
  }
  return *type;
}

/// The bytes of a tensor, or none when they cannot be counted.
std::optional<int64_t> size_in_bytes(const Extent& extent) {
  auto bytes = static_cast<int64_t>(c10::elementSize(extent.type));
  for (const int64_t length : extent.shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return bytes;
}

Extent read_extent(const std::string& name, const Json& entry, int64_t data_bytes) {
  if (!entry.is_object()) throw SafetensorsError(fmt::format("tensor '{}': expected a JSON object", name));
  const std::vector<int64_t> offsets = read_counts(name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    throw SafetensorsError(
        fmt::format("tensor '{}': expected data_offsets [begin, end] within the {} bytes of data, found {}", name,
                    data_bytes, entry.at("data_offsets").dump().substr(0, 80)));
  }
  Extent extent{name, read_type(name, entry), read_counts(name, entry, "shape"), offsets[0], offsets[1]};
  const std::optional<int64_t> expected = size_in_bytes(extent);
  if (expected != extent.end - extent.begin) {
    throw SafetensorsError(fmt::format("tensor '{}': its shape and type need {} bytes, its data_offsets have {}", name,
                                       expected ? std::to_string(*expected) : "more than 2^63",
                                       extent.end - extent.begin));
  }
  return extent;
}

/// The tensors must cover the data exactly: no byte twice, none left over.
void check_cover(std::vector<Extent> extents, int64_t data_bytes) {
  std::ranges::sort(extents, {}, [](const Extent& extent) { return std::pair(extent.begin, extent.end); });
  int64_t covered = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < covered) {
      throw SafetensorsError(
          fmt::format("tensor '{}' overlaps another: it begins at byte {}, the one before ends at {}", extent.name,
                      extent.begin, covered));
    }
    if (extent.begin > covered) {
      throw SafetensorsError(
          fmt::format("bytes {} to {}, before tensor '{}', belong to no tensor", covered, extent.begin, extent.name));
    }
    covered = extent.end;
  }
  if (covered != data_bytes) {
    throw SafetensorsError(fmt::format("the tensors end at byte {}, the data at {}", covered, data_bytes));
  }
}

at::Tensor read_tensor(const PosixFile& file, const Extent& extent, int64_t data_begin) {
  at::Tensor tensor = at::empty(extent.shape, extent.type);
  const std::span<std::byte> bytes = format::bytes_of(tensor);
  file.read_at(data_begin + extent.begin, bytes);
  if (extent.type == at::kBool && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; })) {
    throw SafetensorsError(fmt::format("tensor '{}': a BOOL byte is neither 0 nor 1", extent.name));
  }
  return tensor;
}

std::map<std::string, std::string> read_metadata(const Json& metadata) {
  if (!metadata.is_object() || !std::ranges::all_of(metadata, [](const Json& value) { return value.is_string(); })) {
    throw SafetensorsError(fmt::format("expected {} to be a map of strings", format::kMetadataKey));
  }
  return metadata.get<std::map<std::string, std::string>>();
}

SafetensorsFile read_file(const PosixFile& file) {
  const int64_t size_bytes = file.size_bytes();
  int64_t data_begin = 0;
  const Json header = read_header(file, size_bytes, data_begin);
  SafetensorsFile result;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == format::kMetadataKey) {
      result.metadata = read_metadata(entry);
    } else {
      extents.push_back(read_extent(name, entry, size_bytes - data_begin));
    }
  }
  check_cover(extents, size_bytes - data_begin);
  for (const Extent& extent : extents) result.tensors.push_back({extent.name, read_tensor(file, extent, data_begin)});
  return result;
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& file) {
  try {
    return read_file(PosixFile::open(file));
  } catch (const std::system_error& error) {
    throw SafetensorsError(error.what());
  } catch (const nlohmann::json::exception& error) {
    throw SafetensorsError(fmt::format("{}: the header is not valid JSON: {}", file.string(), error.what()));
  } catch (const SafetensorsError& error) {
    throw SafetensorsError(
        fmt::format("{}: {}; the file is damaged or no safetensors file", file.string(), error.what()));
  }
}

const at::Tensor& SafetensorsFile::at(const std::string& name) const {
  const auto entry = std::ranges::find(tensors, name, &NamedTensor::name);
  if (entry == tensors.end()) {
    throw SafetensorsError(
        fmt::format("expected a tensor '{}', found none of that name among {} tensors", name, tensors.size()));
  }
  return entry->tensor;
}

}  // namespace tutti::train
