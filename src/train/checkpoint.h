// Checkpoints of one model: step_N/ folders that appear complete or not at all.
#ifndef TUTTI_SRC_TRAIN_CHECKPOINT_H
#define TUTTI_SRC_TRAIN_CHECKPOINT_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/train/safetensors.h"
#include "src/train/safetensors_file.h"

namespace tutti::train {

class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What step_N/ will hold; the tensors are the model's own, not copies.
struct Checkpoint {
  int64_t step = 0;
  std::vector<NamedTensor> weights;  ///< weights.safetensors: parameters and buffers by state-dict name
  std::vector<NamedTensor> state;    ///< state.safetensors: moments, every grain's buffers
  nlohmann::json description;        ///< in the manifest: progress, hashes, versions
};

/// A step_N/ whose files matched their manifest when it was opened. Tensors stay in the files until they are read.
struct StoredCheckpoint {
  int64_t step = 0;
  SafetensorsFile weights, state;
  nlohmann::json description;
};

/// The checkpoints in one model's folder. Writing: aside, synced, renamed last; the previous good one stays until then.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path folder);

  /// Writes step_N/ (unless a good one is there: a step's contents never change) and removes all but the newest `keep`.
  /// Throws SafetensorsError or std::system_error; what was there before is then untouched.
  void write(const Checkpoint& checkpoint, int64_t keep) const;

  /// Removes what a killed process left half written. While nobody writes.
  void remove_unfinished() const;

  /// The steps that have a folder, newest first.
  std::vector<int64_t> steps() const;

  /// The newest step whose files match their manifest. Folders that do not are renamed step_N.bad, with a warning.
  std::optional<int64_t> newest_good() const;

  /// Opens step_N/; throws CheckpointError naming the file that differs from the manifest.
  StoredCheckpoint open(int64_t step) const;

  /// The manifest of step_N/ alone: its files are not looked at. Throws CheckpointError when it is not complete.
  nlohmann::json manifest(int64_t step) const;

  /// The manifest of a step_N/ whose files match it. Throws CheckpointError naming the file that does not.
  nlohmann::json description(int64_t step) const;

  /// True when FOLDER/NAME/weights.safetensors has the bytes that step_N/ has, by size and checksum.
  bool holds_weights_of(const std::string& name, int64_t step) const;

  /// Replaces FOLDER/NAME/weights.safetensors as a whole (final/, best/). Throws as write() does.
  void write_weights(const std::string& name, const std::vector<NamedTensor>& weights) const;

 private:
  bool is_good(int64_t step) const;
  std::filesystem::path step_folder(int64_t step) const;
  std::filesystem::path folder_;
};

}  // namespace tutti::train

#endif
