#include "src/train/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/graph/initialise.h"
#include "src/program/lane_region.h"
#include "src/program/node_context.h"
#include "src/train/evaluation.h"
#include "src/train/grain_trainer.h"
#include "src/train/model_memory.h"

namespace tutti::train {

namespace {

using Clock = std::chrono::steady_clock;

/// Address space for a trial: far more than the prediction, since its need is what the trial finds out. Only what is
/// touched takes memory.
int64_t trial_region_bytes(const ModelSpec& spec, const program::Program& program) {
  constexpr int64_t kLeast = int64_t{256} << 20;
  constexpr int64_t kFactor = 8;
  return kLeast + kFactor * predicted_lane_bytes(spec, program);
}

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

}  // namespace

std::string trial_shape(const ModelSpec& spec, const program::Program& program) {
  std::string metrics;
  for (const program::Metric metric : spec.metrics) metrics += program::name_of(metric) + ",";
  const auto tried_rows = [&](EvaluationSource::Kind kind) {
    return std::min(evaluation_row_count(spec, kind), spec.evaluation_batch);
  };
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", program.graph().signature(), spec.double_precision, spec.island,
                     static_cast<int>(spec.loss.kind), metrics, spec.batch, spec.grains, spec.accumulate,
                     tried_rows(EvaluationSource::Kind::kValidation), tried_rows(EvaluationSource::Kind::kTest));
}

int64_t predicted_lane_bytes(const ModelSpec& spec, const program::Program& program) {
  const graph::Graph& graph = program.graph();
  const auto float_bytes = static_cast<int64_t>(c10::elementSize(program.precision()));
  const auto batch_bytes = [&](int64_t rows) {
    int64_t bytes = 0;
    for (const graph::ValueId id : graph.inputs) {
      bytes += program::value_bytes(graph.values[static_cast<size_t>(id)], rows, float_bytes);
    }
    const graph::Value& output = graph.values[static_cast<size_t>(graph.outputs.front())];
    const int64_t output_bytes = program::value_bytes(output, rows, float_bytes);
    return bytes + 3 * output_bytes + std::max<int64_t>(output_bytes, rows * static_cast<int64_t>(sizeof(int64_t)));
  };
  const int64_t grain_rows = spec.greatest_grain_rows();
  return std::max(
      program.transient_bytes(grain_rows, /*training=*/true) + batch_bytes(grain_rows),
      program.transient_bytes(spec.evaluation_batch, /*training=*/false) + batch_bytes(spec.evaluation_batch));
}

TrialResult run_trial(const ModelSpec& spec, const std::shared_ptr<const program::Program>& program) {
  const graph::Graph& graph = program->graph();
  const auto layout = ModelLayout::of(graph, program->precision(), 0, 1 + GrainTrainer::scratch_count(spec, 1), 1);
  FusedBuffers fused({layout}, {&graph});
  ModelMemory memory(layout, graph, fused);
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    graph::initialise(graph.parameters[p], static_cast<int64_t>(p), spec.seed, memory.parameter_views[p]);
  }
  ModelSpec one_grain = spec;
  one_grain.batch = spec.greatest_grain_rows();
  one_grain.grains = 1;
  const TrainingSource source(one_grain);
  GrainTrainer trainer(one_grain, program, memory, source, 1);
  Evaluation evaluation(one_grain, program, memory, 1);

  TrialResult result;
  program::LaneRegion region(trial_region_bytes(spec, *program));
  const program::LaneRegion::Use use(region);
  const int64_t last_batch = std::min(spec.accumulate, source.batches_per_epoch());
  trainer.compute({0, 0, last_batch}, 0, 0, 0, 0);
  auto began = Clock::now();
  trainer.compute({0, 0, last_batch}, 0, 0, 0, 0);
  result.step_seconds = seconds_since(began);
  began = Clock::now();
  evaluation.try_first_batches(0);
  result.evaluation_seconds = seconds_since(began);
  result.region_bytes = region.extent_bytes();
  return result;
}

}  // namespace tutti::train
