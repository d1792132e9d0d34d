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

#include "src/train/fault_point.h"
#include "src/train/posix_file.h"

namespace tutti::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kManifest = "manifest.json";

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

/// Makes `target`, which does not exist, what `fill` writes into a folder beside it, by one rename.
void publish(const fs::path& target, const std::function<void(const fs::path&)>& fill) {
  const fs::path aside = target.string() + ".writing";
  fs::remove_all(aside);
  fs::create_directories(aside);
  try {
    fill(aside);
    fault_point("checkpoint.written");
    sync_directory(aside);
    fault_point("checkpoint.synced");
    fs::rename(aside, target);
    fault_point("checkpoint.renamed");
    sync_directory(target.parent_path());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
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
    write_safetensors(aside / kWeights, checkpoint.weights);
    write_safetensors(aside / kState, checkpoint.state);
    nlohmann::json manifest = checkpoint.description;
    manifest["step"] = checkpoint.step;
    manifest["files"] = {{kWeights, fingerprint(aside / kWeights)}, {kState, fingerprint(aside / kState)}};
    replace_file(aside / kManifest, manifest.dump(1) + "\n");
  });
  const auto all = steps();
  for (size_t i = static_cast<size_t>(std::max<int64_t>(keep, 1)); i < all.size(); ++i) {
    if (all[i] >= checkpoint.step) continue;
    std::error_code error;
    fs::remove_all(step_folder(all[i]), error);
    if (error) spdlog::warn("{} could not be removed: {}", step_folder(all[i]).string(), error.message());
  }
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (const auto step = step_in(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

nlohmann::json CheckpointStore::description(int64_t step) const {
  const fs::path file = step_folder(step) / kManifest;
  std::ifstream stream(file);
  nlohmann::json manifest = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  const auto holds = [&](const char* key, bool (nlohmann::json::*is)() const noexcept) {
    return manifest.is_object() && manifest.contains(key) && (manifest[key].*is)();
  };
  if (!holds("files", &nlohmann::json::is_object) || !holds("progress", &nlohmann::json::is_object) ||
      !holds("metrics_bytes", &nlohmann::json::is_number) || !holds("timing_bytes", &nlohmann::json::is_number)) {
    throw CheckpointError("checkpoint: expected a manifest in " + file.string() + ", found none that is complete");
  }
  for (const char* name : {kWeights, kState}) {
    if (found_fingerprint(step_folder(step) / name) != manifest["files"].value(name, nlohmann::json())) {
      throw CheckpointError(
          "checkpoint: " + (step_folder(step) / name).string() +
          " does not have the size and checksum that its manifest gives; it was damaged after writing");
    }
  }
  return manifest;
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

Checkpoint CheckpointStore::read(int64_t step) const {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.description = description(step);
  checkpoint.weights = read_safetensors(step_folder(step) / kWeights).tensors;
  checkpoint.state = read_safetensors(step_folder(step) / kState).tensors;
  return checkpoint;
}

void CheckpointStore::write_weights(const std::string& name, const std::vector<NamedTensor>& weights) const {
  const fs::path folder = folder_ / name;
  const fs::path aside = folder / (std::string(kWeights) + ".writing");
  fs::create_directories(folder);
  write_safetensors(aside, weights);
  fs::rename(aside, folder / kWeights);
  sync_directory(folder);
}

}  // namespace tutti::train
