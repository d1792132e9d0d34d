// Reads members through LibTorch's reader, after the directory has been checked.
#include "src/graph/pt2_archive.h"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/data_error.h"
#include "data/zip_directory.h"
#include "src/graph/bounded_json.h"
#include "src/graph/graph.h"
#include "src/graph/pt2_schema.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

constexpr const char* kAdvice = "Write the archive anew with torch.export.save.";

/// Throws where a name is not that of a file in the folder `root`, in which all members lie.
void check_name(const std::string& name, const std::string& root) {
  const std::filesystem::path path(name);
  const bool leads_out = std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  if (path.is_absolute() || leads_out || name.find_first_of("\\:") != std::string::npos) {
    throw GraphError(fmt::format("member '{}' has a name which is absolute or leads out of the archive", name));
  }
  if (root.empty() || !name.starts_with(root)) {
    throw GraphError(fmt::format("expected all members in one folder, that of the first, found member '{}'", name));
  }
}

/// By name without the root folder. PyTorch's reader opens an archive only after this.
std::map<std::string, int64_t> member_sizes(const std::filesystem::path& file) try {
  const std::vector<data::ZipMember> members = data::read_zip_directory(file);
  const std::string first = members.empty() ? "" : members.front().name;
  const std::string root = first.substr(0, first.find('/') + 1);
  std::map<std::string, int64_t> sizes;
  for (const data::ZipMember& member : members) {
    check_name(member.name, root);
    if (member.method != data::ZipMethod::kStored) {
      throw GraphError(fmt::format("member '{}' is compressed, which none of torch.export.save is", member.name));
    }
    sizes.emplace(member.name.substr(root.size()), member.bytes);
  }
  return sizes;
} catch (const data::ZipError& error) {
  throw GraphError(fmt::format("{}. {}", error.what(), kAdvice));
} catch (const data::DataError& error) {
  throw GraphError(error.what());
} catch (const GraphError& error) {
  throw GraphError(fmt::format("{}: {}. {}", file.string(), error.what(), kAdvice));
}

int64_t known(const Pt2Size& size, const char* what) {
  if (!size.known || *size.known < 0) throw GraphError(fmt::format("expected {} to be a count", what));
  return *size.known;
}

std::vector<int64_t> known(const std::vector<Pt2Size>& sizes, const char* what) {
  std::vector<int64_t> result;
  for (const Pt2Size& size : sizes) result.push_back(known(size, what));
  return result;
}

/// The number of elements from the storage's beginning to the tensor's last one; none where it is beyond 64 bits.
std::optional<int64_t> reach(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return offset;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) return {};
  }
  int64_t end = 0;
  if (__builtin_add_overflow(last, 1, &end)) return {};
  return end;
}

/// The tensor that the description makes of the bytes.
at::Tensor strided(const at::Tensor& bytes, const Pt2TensorMeta& meta) {
  const std::vector<int64_t> sizes = known(meta.sizes, "sizes"), strides = known(meta.strides, "strides");
  const int64_t offset = known(meta.storage_offset, "storage_offset");
  if (sizes.size() != strides.size()) {
    throw GraphError(fmt::format("it has {} sizes and {} strides", sizes.size(), strides.size()));
  }
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(meta.type));
  const std::optional<int64_t> elements = reach(sizes, strides, offset);
  if (!elements || *elements > bytes.numel() / element_bytes) {
    throw GraphError(
        fmt::format("its sizes [{}], strides [{}] and offset {} need {} elements of {} bytes, its file "
                    "has {} bytes",
                    fmt::join(sizes, ", "), fmt::join(strides, ", "), offset,
                    elements ? std::to_string(*elements) : "more than 2^63", element_bytes, bytes.numel()));
  }
  at::Tensor tensor = at::empty({0}, meta.type);
  tensor.set_(bytes.storage(), offset, sizes, strides);
  return tensor;
}

}  // namespace

Pt2Archive::Pt2Archive(std::filesystem::path file) : file_(std::move(file)), sizes_(member_sizes(file_)) {
  try {
    reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(file_.string());
  } catch (const c10::Error& error) {
    fail("", error.what_without_backtrace());
  }
  expect_text("archive_format", "pt2");
  expect_text("archive_version", "0");
  expect_text("byteorder", "little");
}

Pt2Archive::Pt2Archive(Pt2Archive&&) noexcept = default;
Pt2Archive::~Pt2Archive() = default;

void Pt2Archive::fail(const std::string& member, const std::string& fault) const {
  throw GraphError(fmt::format("{}{}{}: {}", file_.string(), member.empty() ? "" : ": ", member, fault));
}

at::Tensor Pt2Archive::storage(const std::string& member) {
  const auto size = sizes_.find(member);
  if (size == sizes_.end()) fail(member, "expected this member, found none. Write the archive anew.");
  at::Tensor bytes = at::empty({size->second}, at::kByte);
  try {
    const size_t read = reader_->getRecord(member, bytes.data_ptr(), static_cast<size_t>(size->second));
    if (static_cast<int64_t>(read) != size->second) fail(member, "the directory and the member differ in size");
  } catch (const c10::Error& error) {
    fail(member, error.what_without_backtrace());
  }
  return bytes;
}

std::string Pt2Archive::text(const std::string& member) {
  const at::Tensor bytes = storage(member);
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

Json Pt2Archive::json(const std::string& member) {
  const auto size = sizes_.find(member);
  if (size != sizes_.end() && size->second > kMaxJsonBytes) {
    fail(member, fmt::format("expected at most {} bytes of JSON, found {}", kMaxJsonBytes, size->second));
  }
  try {
    return parse_bounded_json(text(member));
  } catch (const GraphError& error) {
    const std::string fault = error.what();
    if (fault.starts_with(file_.string())) throw;
    fail(member, fault);
  }
}

void Pt2Archive::expect_text(const std::string& member, const std::string& expected) {
  const auto size = sizes_.find(member);
  if (size == sizes_.end()) {
    fail(member,
         "expected this member, found none. The file is no archive of torch.export.save (PyTorch 2.9 to 2.11).");
  }
  std::string found = size->second > 100 ? "a long text" : text(member);
  while (!found.empty() && found.back() == '\n') found.pop_back();
  if (found != expected) {
    fail(member, fmt::format("expected '{}', found '{}'. Export the model with PyTorch 2.11.", expected, found));
  }
}

Json Pt2Archive::program() {
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes_) {
    if (name.starts_with("models/") && name.ends_with(".json")) names.push_back(name);
  }
  constexpr const char* kDefault = "models/model.json";
  if (sizes_.contains(kDefault)) return json(kDefault);
  if (names.size() != 1) fail("models", fmt::format("expected one program, found [{}]", fmt::join(names, ", ")));
  return json(names.front());
}

std::vector<Pt2Weight> Pt2Archive::tensors(const std::string& folder, const std::string& config_name) {
  const std::string config_member = folder + config_name;
  std::vector<Pt2Weight> result;
  std::map<std::string, at::Tensor> storages;
  const Json config = json(config_member);
  try {
    for (const auto& [name, payload] : config.at("config").items()) {
      const std::string path = folder + payload.at("path_name").get<std::string>();
      if (payload.at("use_pickle").get<bool>()) {
        fail(path, fmt::format("'{}' is stored as a Python pickle (a tensor subclass or an object), which is never "
                               "read. Export the model with plain tensors.",
                               name));
      }
      auto bytes = storages.find(path);
      if (bytes == storages.end()) bytes = storages.emplace(path, storage(path)).first;
      try {
        const Pt2TensorMeta meta = tensor_meta_of(payload.at("tensor_meta"));
        result.push_back({name, strided(bytes->second, meta), path, meta.requires_grad});
      } catch (const GraphError& error) {
        fail(path, fmt::format("'{}': {}. Write the archive anew.", name, error.what()));
      }
    }
  } catch (const Json::exception& error) {
    fail(config_member, fmt::format("expected a list of tensors as torch.export.save writes it: {}", error.what()));
  }
  return result;
}

std::vector<Pt2Weight> Pt2Archive::weights() { return tensors("data/weights/", "model_weights_config.json"); }
std::vector<Pt2Weight> Pt2Archive::constants() { return tensors("data/constants/", "model_constants_config.json"); }

}  // namespace tutti::graph
