// Reads safetensors files, trusting nothing in them.
#include "src/train/safetensors_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

#include "src/train/safetensors_format.h"

namespace tutti::train {
namespace {

namespace format = safetensors_format;
using Json = nlohmann::ordered_json;

/// What is held at once of a tensor whose type is not its destination's.
constexpr int64_t kConversionBytes = 1 << 20;

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

Json parse_header(const PosixFile& file, int64_t size_bytes, int64_t& data_begin) {
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
std::optional<int64_t> size_in_bytes(const StoredTensor& tensor) {
  auto bytes = static_cast<int64_t>(c10::elementSize(tensor.type));
  for (const int64_t length : tensor.shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return bytes;
}

StoredTensor read_entry(const std::string& name, const Json& entry, int64_t data_bytes) {
  if (!entry.is_object()) throw SafetensorsError(fmt::format("tensor '{}': expected a JSON object", name));
  const std::vector<int64_t> offsets = read_counts(name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    throw SafetensorsError(
        fmt::format("tensor '{}': expected data_offsets [begin, end] within the {} bytes of data, found {}", name,
                    data_bytes, entry.at("data_offsets").dump().substr(0, 80)));
  }
  StoredTensor tensor{name, read_type(name, entry), read_counts(name, entry, "shape"), offsets[0], offsets[1]};
  const std::optional<int64_t> expected = size_in_bytes(tensor);
  if (expected != tensor.end - tensor.begin) {
    throw SafetensorsError(fmt::format("tensor '{}': its shape and type need {} bytes, its data_offsets have {}", name,
                                       expected ? std::to_string(*expected) : "more than 2^63",
                                       tensor.end - tensor.begin));
  }
  return tensor;
}

/// The tensors must cover the data exactly: no byte twice, none left over.
void check_cover(std::vector<StoredTensor> tensors, int64_t data_bytes) {
  std::ranges::sort(tensors, {}, [](const StoredTensor& tensor) { return std::pair(tensor.begin, tensor.end); });
  int64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin < covered) {
      throw SafetensorsError(
          fmt::format("tensor '{}' overlaps another: it begins at byte {}, the one before ends at {}", tensor.name,
                      tensor.begin, covered));
    }
    if (tensor.begin > covered) {
      throw SafetensorsError(
          fmt::format("bytes {} to {}, before tensor '{}', belong to no tensor", covered, tensor.begin, tensor.name));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw SafetensorsError(fmt::format("the tensors end at byte {}, the data at {}", covered, data_bytes));
  }
}

std::map<std::string, std::string> read_metadata(const Json& metadata) {
  if (!metadata.is_object() || !std::ranges::all_of(metadata, [](const Json& value) { return value.is_string(); })) {
    throw SafetensorsError(fmt::format("expected {} to be a map of strings", format::kMetadataKey));
  }
  return metadata.get<std::map<std::string, std::string>>();
}

void check_bool(const StoredTensor& tensor, std::span<const std::byte> bytes) {
  if (tensor.type == at::kBool && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; })) {
    throw SafetensorsError(fmt::format("tensor '{}': a BOOL byte is neither 0 nor 1", tensor.name));
  }
}

/// Runs `read`; whatever it throws becomes a SafetensorsError that names the file.
template <typename Read>
auto naming(const std::filesystem::path& path, const Read& read) {
  try {
    return read();
  } catch (const std::system_error& error) {
    throw SafetensorsError(error.what());
  } catch (const nlohmann::json::exception& error) {
    throw SafetensorsError(fmt::format("{}: the header is not valid JSON: {}", path.string(), error.what()));
  } catch (const SafetensorsError& error) {
    throw SafetensorsError(
        fmt::format("{}: {}; the file is damaged or no safetensors file", path.string(), error.what()));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path)
    : path_(std::move(path)), file_(naming(path_, [this] { return PosixFile::open(path_); })) {
  naming(path_, [this] { read_header(); });
}

void SafetensorsFile::read_header() {
  const int64_t size_bytes = file_.size_bytes();
  const Json header = parse_header(file_, size_bytes, data_begin_);
  for (const auto& [name, entry] : header.items()) {
    if (name == format::kMetadataKey) {
      metadata_ = read_metadata(entry);
    } else {
      tensors_.push_back(read_entry(name, entry, size_bytes - data_begin_));
    }
  }
  check_cover(tensors_, size_bytes - data_begin_);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void SafetensorsFile::read(const StoredTensor& tensor, const at::Tensor& into) const {
  TORCH_CHECK(into.is_contiguous() && into.device().is_cpu() && into.sizes() == at::IntArrayRef(tensor.shape),
              "safetensors: tensor ", tensor.name, " of shape ", at::IntArrayRef(tensor.shape),
              ": expected to be read into a contiguous tensor of this shape, found ", into.sizes());
  naming(path_, [&] {
    if (into.scalar_type() != tensor.type) return convert(tensor, into);
    const std::span<std::byte> bytes = format::bytes_of(into);
    file_.read_at(data_begin_ + tensor.begin, bytes);
    check_bool(tensor, bytes);
  });
}

void SafetensorsFile::convert(const StoredTensor& tensor, const at::Tensor& into) const {
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(tensor.type));
  const int64_t chunk_count = kConversionBytes / element_bytes;
  const at::Tensor chunk = at::empty({std::min(chunk_count, into.numel())}, tensor.type);
  const at::Tensor flat = into.view({-1});
  for (int64_t begin = 0; begin < into.numel(); begin += chunk_count) {
    const int64_t count = std::min(chunk_count, into.numel() - begin);
    const std::span<std::byte> bytes = format::bytes_of(chunk).first(static_cast<size_t>(count * element_bytes));
    file_.read_at(data_begin_ + tensor.begin + begin * element_bytes, bytes);
    check_bool(tensor, bytes);
    flat.narrow(0, begin, count).copy_(chunk.narrow(0, 0, count));
  }
}

}  // namespace tutti::train
