// Writes safetensors files.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <system_error>

#include "src/train/posix_file.h"
#include "src/train/safetensors.h"
#include "src/train/safetensors_format.h"

namespace tutti::train {
namespace {

namespace format = safetensors_format;
using Json = nlohmann::ordered_json;

void check_tensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  const auto fail = [&](const NamedTensor& entry, const std::string& what) {
    throw SafetensorsError(fmt::format("{}: tensor '{}' {}", file.string(), entry.name, what));
  };
  for (const NamedTensor& entry : tensors) {
    if (entry.name == format::kMetadataKey) fail(entry, "has a name that the format reserves; choose another");
    if (!names.insert(entry.name).second) fail(entry, "is there twice; names must differ");
    if (!entry.tensor.defined()) fail(entry, "is undefined");
    if (!entry.tensor.device().is_cpu() || !entry.tensor.is_contiguous()) {
      fail(entry, "must be contiguous and in CPU memory");
    }
    if (!format::type_name(entry.tensor.scalar_type())) {
      fail(entry, fmt::format("has type {}; a safetensors file holds {}", c10::toString(entry.tensor.scalar_type()),
                              format::type_names()));
    }
  }
}

/// The order of the data: larger elements first, else as given. Then each tensor is aligned to its element, without
/// gaps, which the format does not allow.
std::vector<size_t> data_order(const std::vector<NamedTensor>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return tensors[i].tensor.element_size(); });
  return order;
}

std::string make_header(const std::vector<NamedTensor>& tensors, const std::vector<size_t>& order,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<int64_t> begins(tensors.size());
  int64_t end = 0;
  for (const size_t i : order) {
    begins[i] = end;
    end += static_cast<int64_t>(tensors[i].tensor.nbytes());
  }
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(format::kMetadataKey)] = metadata;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].tensor;
    Json& entry = header[tensors[i].name];
    entry["dtype"] = *format::type_name(tensor.scalar_type());
    entry["shape"] = tensor.sizes().vec();
    entry["data_offsets"] = {begins[i], begins[i] + static_cast<int64_t>(tensor.nbytes())};
  }
  std::string text = header.dump();
  const size_t unaligned = (text.size() + format::kLengthBytes) % format::kDataAlignment;
  if (unaligned != 0) text.append(format::kDataAlignment - unaligned, ' ');
  return text;
}

void write_file(const std::filesystem::path& file, const std::string& header, const std::vector<NamedTensor>& tensors,
                const std::vector<size_t>& order) {
  PosixFile out = PosixFile::create(file);
  const uint64_t header_bytes = header.size();
  out.write(std::as_bytes(std::span(&header_bytes, 1)));
  out.write(std::as_bytes(std::span(header)));
  for (const size_t i : order) out.write(format::bytes_of(tensors[i].tensor));
  out.sync();
  out.close();
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_tensors(file, tensors);
  try {
    const std::vector<size_t> order = data_order(tensors);
    const std::string header = make_header(tensors, order, metadata);
    if (static_cast<int64_t>(header.size()) > format::kMaxHeaderBytes) {
      throw SafetensorsError(fmt::format("{}: the header would have {} bytes; at most {} can be read back",
                                         file.string(), header.size(), format::kMaxHeaderBytes));
    }
    write_file(file, header, tensors, order);
  } catch (const std::system_error& error) {
    throw SafetensorsError(error.what());
  } catch (const nlohmann::json::exception& error) {
    throw SafetensorsError(fmt::format("{}: a name or a metadata text is not UTF-8: {}", file.string(), error.what()));
  }
}

}  // namespace tutti::train
