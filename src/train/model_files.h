// The files of one model's output folder: metrics, checkpoints, final weights.
#ifndef TUTTI_SRC_TRAIN_MODEL_FILES_H
#define TUTTI_SRC_TRAIN_MODEL_FILES_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "src/graph/graph.h"
#include "src/train/checkpoint.h"
#include "src/train/metrics_log.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"
#include "src/train/progress.h"

namespace tutti::train {

/// A model as tensors, which are those of `memory`, and numbers.
Checkpoint make_checkpoint(const ModelSpec& spec, const graph::Graph& graph, const ModelMemory& memory,
                           const Progress& progress);

/// The progress that the manifest of a checkpoint records. Throws CheckpointError when it belongs to a model with other
/// settings.
Progress progress_of(const nlohmann::json& manifest, const ModelSpec& spec);

/// Reads a checkpoint's tensors to their places in memory and returns its progress. Throws CheckpointError naming the
/// tensor that is absent or has another shape or type.
Progress restore(const StoredCheckpoint& checkpoint, const ModelSpec& spec, const graph::Graph& graph,
                 ModelMemory& memory);

/// Sets parameters (and buffers, where given) from a safetensors file with state-dict names. Numbers of another type
/// are converted. Throws CheckpointError as restore() does, and SafetensorsError.
void load_weights(const std::filesystem::path& path, const graph::Graph& graph, ModelMemory& memory);

/// The hash of a model's bit-relevant keys, as checkpoints record it.
std::string spec_hash(const ModelSpec& spec);

/// OUT/models/NAME, written by the team's first member only.
class ModelFiles {
 public:
  /// Makes the folder, removes what a killed process left half written, and cuts the logs back to what the checkpoint
  /// `resumed` knows (null: empty logs).
  ModelFiles(const std::filesystem::path& folder, const ModelSpec& spec, const StoredCheckpoint* resumed);

  void log(const nlohmann::json& line) { metrics_.write(line); }

  /// Wall-clock figures: not deterministic, so kept apart from the metrics.
  void log_timing(const nlohmann::json& line) { timing_.write(line); }

  /// Writes step_N/. False, with a warning once, when the disk is full or gives an error: the previous one stays.
  bool write_checkpoint(const Checkpoint& checkpoint);

  /// Writes the last step's checkpoint and final/weights.safetensors; where that fails, tries twice more, a second
  /// apart. Throws std::runtime_error that says what failed and what to do; what could be written stays.
  void write_last(const Checkpoint& checkpoint);

  /// Replaces `name`/weights.safetensors ("best"). Throws.
  void write_weights(const std::string& name, const std::vector<NamedTensor>& weights);

 private:
  void store(Checkpoint checkpoint);

  const ModelSpec& spec_;
  CheckpointStore store_;
  MetricsLog metrics_, timing_;
  bool warned_ = false;
};

}  // namespace tutti::train

#endif
