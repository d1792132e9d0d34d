#include "src/train/checkpoint.h"

#include <spdlog/spdlog.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <system_error>

#include "data/file_kind.h"
#include "src/train/fault_point.h"
#include "src/train/posix_file.h"

namespace tutti::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kAside = ".writing";  // what a path ends in until its content is complete

/// Size and CRC-32 of a file, as the manifest records them. Throws std::system_error when not all of it can be read.
nlohmann::json fingerprint(const fs::path& path) {
  const PosixFile file = PosixFile::open(path);
  const int64_t size_bytes = file.size_bytes();
  std::vector<std::byte> chunk(1 << 20);
  uLong crc = crc32(0, nullptr, 0);
  for (int64_t begin = 0; begin < size_bytes; begin += std::ssize(chunk)) {
    const auto bytes = std::span(chunk).first(static_cast<size_t>(std::min(std::ssize(chunk), size_bytes - begin)));
    file.read_at(begin, bytes);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  }
  return {{"bytes", size_bytes}, {"crc32", static_cast<uint32_t>(crc)}};
}

/// The fingerprint of a checkpoint's file; one that cannot be read counts as damaged.
nlohmann::json found_fingerprint(const fs::path& path) {
  try {
    return fingerprint(path);
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string("checkpoint: ") + error.what());
  }
}

std::optional<int64_t> step_in(const std::string& name) {
  constexpr std::string_view kPrefix = "step_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return step;
}

/// Makes what `write` makes of a path beside `target`, a file or a folder, the target by one rename. Where that fails,
/// nothing of it stays.
void publish(const fs::path& target, const std::function<void(const fs::path&)>& write) {
  const fs::path aside = target.string() + kAside;
  fs::remove_all(aside);
  try {
    write(aside);
    fs::rename(aside, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
  sync_directory(target.parent_path());
}

/// Removes a path with all below it; a warning where that fails.
void remove_or_warn(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) spdlog::warn("{} could not be removed: {}", path.string(), error.message());
}

/// What lies directly in a folder; nothing where it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  return paths;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder) : folder_(std::move(folder)) {}

fs::path CheckpointStore::step_folder(int64_t step) const { return folder_ / ("step_" + std::to_string(step)); }

void CheckpointStore::write(const Checkpoint& checkpoint, int64_t keep) const {
  if (fs::exists(step_folder(checkpoint.step))) {
    if (is_good(checkpoint.step)) return;
    fs::remove_all(step_folder(checkpoint.step));
  }
  publish(step_folder(checkpoint.step), [&](const fs::path& aside) {
    fs::create_directories(aside);
    write_safetensors(aside / kWeights, checkpoint.weights);
    write_safetensors(aside / kState, checkpoint.state);
    nlohmann::json manifest = checkpoint.description;
    manifest["step"] = checkpoint.step;
    manifest["files"] = {{kWeights, fingerprint(aside / kWeights)}, {kState, fingerprint(aside / kState)}};
    replace_file(aside / kManifest, manifest.dump(1) + "\n");
    fault_point("checkpoint.written");
    sync_directory(aside);
    fault_point("checkpoint.synced");
  });
  fault_point("checkpoint.renamed");
  const auto all = steps();
  for (size_t i = static_cast<size_t>(std::max<int64_t>(keep, 1)); i < all.size(); ++i) {
    if (all[i] < checkpoint.step) remove_or_warn(step_folder(all[i]));
  }
}

void CheckpointStore::remove_unfinished() const {
  for (const fs::path& path : entries_of(folder_)) {
    const fs::path weights = path / (std::string(kWeights) + kAside);
    std::error_code none;
    if (path.extension() == kAside) remove_or_warn(path);
    if (fs::exists(weights, none)) remove_or_warn(weights);
  }
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  for (const fs::path& path : entries_of(folder_)) {
    if (const auto step = step_in(path.filename().string())) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

nlohmann::json CheckpointStore::manifest(int64_t step) const {
  const fs::path file = step_folder(step) / kManifest;
  if (const std::string kind = data::other_than_regular_file(file); !kind.empty()) {
    throw CheckpointError("checkpoint: expected a manifest in " + file.string() + ", found " + kind);
  }
  std::ifstream stream(file);
  nlohmann::json manifest = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  const auto holds = [&](const char* key, bool (nlohmann::json::*is)() const noexcept) {
    return manifest.is_object() && manifest.contains(key) && (manifest[key].*is)();
  };
  if (!holds("files", &nlohmann::json::is_object) || !holds("progress", &nlohmann::json::is_object) ||
      !holds("step", &nlohmann::json::is_number_integer) || !holds("metrics_bytes", &nlohmann::json::is_number) ||
      !holds("timing_bytes", &nlohmann::json::is_number)) {
    throw CheckpointError("checkpoint: expected a manifest in " + file.string() + ", found none that is complete");
  }
  if (manifest["step"] != step) {
    throw CheckpointError("checkpoint: expected step " + std::to_string(step) + " in " + file.string() +
                          ", found another; the folder was renamed");
  }
  return manifest;
}

nlohmann::json CheckpointStore::description(int64_t step) const {
  nlohmann::json manifest = this->manifest(step);
  for (const char* name : {kWeights, kState}) {
    if (found_fingerprint(step_folder(step) / name) != manifest["files"].value(name, nlohmann::json())) {
      throw CheckpointError(
          "checkpoint: " + (step_folder(step) / name).string() +
          " does not have the size and checksum that its manifest gives; it was damaged after writing");
    }
  }
  return manifest;
}

bool CheckpointStore::holds_weights_of(const std::string& name, int64_t step) const {
  const fs::path weights = folder_ / name / kWeights;
  std::error_code none;
  return fs::exists(weights, none) &&
         found_fingerprint(weights) == manifest(step)["files"].value(kWeights, nlohmann::json());
}

bool CheckpointStore::is_good(int64_t step) const {
  try {
    description(step);
    return true;
  } catch (const CheckpointError& error) {
    spdlog::warn("{}", error.what());
    return false;
  }
}

std::optional<int64_t> CheckpointStore::newest_good() const {
  for (const int64_t step : steps()) {
    if (is_good(step)) return step;
    spdlog::warn("{} is set aside as {}.bad", step_folder(step).string(), step_folder(step).string());
    std::error_code ignored;
    fs::rename(step_folder(step), step_folder(step).string() + ".bad", ignored);
  }
  return std::nullopt;
}

StoredCheckpoint CheckpointStore::open(int64_t step) const {
  nlohmann::json description = this->description(step);
  return {step, SafetensorsFile(step_folder(step) / kWeights), SafetensorsFile(step_folder(step) / kState),
          std::move(description)};
}

void CheckpointStore::write_weights(const std::string& name, const std::vector<NamedTensor>& weights) const {
  fs::create_directories(folder_ / name);
  publish(folder_ / name / kWeights, [&](const fs::path& aside) {
    write_safetensors(aside, weights);
    fault_point("weights.written");
  });
}

}  // namespace tutti::train
