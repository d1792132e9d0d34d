#include "launch/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "src/train/batch_source.h"
#include "src/train/buffer_average.h"
#include "src/train/checkpoint.h"
#include "src/train/evaluation.h"
#include "src/train/grain_sum.h"
#include "src/train/model_files.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeights = "weights.safetensors";

/// A layout for running forward: no moments, no gradients, one set of buffers.
train::ModelLayout forward_layout(const program::Program& program) {
  return train::ModelLayout::of(program.graph(), program.precision(), /*moment_count=*/0, /*gradient_count=*/0,
                                /*grain_count=*/1);
}

std::vector<std::string> weight_sets(const fs::path& model_folder) {
  std::vector<std::string> names = {"final", "best"};
  for (const int64_t step : train::CheckpointStore(model_folder).steps())
    names.push_back("step_" + std::to_string(step));
  std::erase_if(names, [&](const std::string& name) { return !fs::exists(model_folder / name / kWeights); });
  return names;
}

}  // namespace

std::optional<fs::path> find_weights(const fs::path& model_folder, const std::string& wanted) {
  for (const std::string& name : weight_sets(model_folder)) {
    if (wanted.empty() ? name != "best" : name == wanted) return model_folder / name / kWeights;
  }
  return std::nullopt;
}

std::string known_weights(const fs::path& model_folder) {
  std::string text;
  for (const std::string& name : weight_sets(model_folder)) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

TrainedModel::TrainedModel(train::ModelSpec spec, std::shared_ptr<const program::Program> program,
                           const fs::path& weights)
    : spec_(std::move(spec)),
      program_(std::move(program)),
      fused_({forward_layout(*program_)}, {&program_->graph()}),
      memory_(forward_layout(*program_), program_->graph(), fused_) {
  train::load_weights(weights, program_->graph(), memory_);
  train::average_buffers(memory_, std::vector<int64_t>{0});
}

nlohmann::json TrainedModel::evaluate() {
  train::Evaluation evaluation(spec_, program_, memory_, /*slot_count=*/1);
  if (!evaluation.has_rows()) return nlohmann::json::object();
  train::GrainSum sum(0, spec_.grains, {});
  for (int64_t grain = 0; grain < spec_.grains; ++grain) {
    const int buffer = sum.acquire().value();
    sum.finish(grain, buffer, evaluation.compute(grain, /*slot=*/0));
  }
  return evaluation.results(sum.parts().front().scalars);
}

void TrainedModel::predict(const std::shared_ptr<const data::DataSet>& rows,
                           const std::function<void(const at::Tensor&)>& take) {
  const train::FieldReader reader(spec_, rows, train::FieldReader::Targets::kNone);
  const graph::Graph& graph = program_->graph();
  if (graph.fixed_batch && rows->row_count() % *graph.fixed_batch != 0) {
    throw data::DataError(
        fmt::format("expected a multiple of {} rows, which the exported graph runs at a time, found {}; "
                    "export the model with a dynamic batch",
                    *graph.fixed_batch, rows->row_count()));
  }
  program::Frame frame = train::evaluation_frame(*program_, memory_);
  const auto output = static_cast<size_t>(graph.outputs.front());
  for (int64_t begin = 0; begin < rows->row_count(); begin += spec_.evaluation_batch) {
    std::vector<int64_t> batch_rows(static_cast<size_t>(std::min(spec_.evaluation_batch, rows->row_count() - begin)));
    std::iota(batch_rows.begin(), batch_rows.end(), begin);
    train::Batch batch = reader.gather(batch_rows, {}, {});
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      frame.values[static_cast<size_t>(graph.inputs[i])] = std::move(batch.inputs[i]);
    }
    program_->forward(frame);
    take(frame.values[output]);
    program_->clear(frame);
  }
}

}  // namespace tutti::launch
