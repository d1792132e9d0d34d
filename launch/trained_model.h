// A model with weights from its output folder, ready to be run forward.
#ifndef TUTTI_LAUNCH_TRAINED_MODEL_H
#define TUTTI_LAUNCH_TRAINED_MODEL_H

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/program/program.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// The weights file in a model's folder: of `wanted` ("final", "best" or "step_N"), or when empty the final ones, else
/// those of the newest checkpoint. None where they are absent.
std::optional<std::filesystem::path> find_weights(const std::filesystem::path& model_folder, const std::string& wanted);

/// What may be given as `wanted` there, for messages: "final, step_120"; "none" when there are no weights.
std::string known_weights(const std::filesystem::path& model_folder);

/// Owns a copy of the weights. Not for several threads at once.
class TrainedModel {
 public:
  /// Throws SafetensorsError or CheckpointError when the file does not have the model's weights.
  TrainedModel(train::ModelSpec spec, std::shared_ptr<const program::Program> program,
               const std::filesystem::path& weights);

  /// Loss and metrics over the spec's validation and test rows, by the sums of training's own evaluations: with equal
  /// weights the same bits. {"validation": {"loss": ..}, "test": {..}}; empty when the spec has no such rows.
  nlohmann::json evaluate();

  /// Runs all rows of `rows` in order, and hands each batch's outputs ([rows, ...], in the model's precision) to
  /// `take`. Targets are not needed.
  void predict(const std::shared_ptr<const data::DataSet>& rows, const std::function<void(const at::Tensor&)>& take);

  const train::ModelSpec& spec() const { return spec_; }

 private:
  train::ModelSpec spec_;
  std::shared_ptr<const program::Program> program_;
  train::FusedBuffers fused_;
  train::ModelMemory memory_;
};

}  // namespace tutti::launch

#endif
