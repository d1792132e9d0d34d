// What training a model costs: predicted seconds and bytes, before anything runs.
#include "partition/cost_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/tree_sum.h"
#include "src/program/metric.h"
#include "src/train/grain_sum.h"
#include "src/train/grain_trainer.h"
#include "src/train/model_memory.h"
#include "src/train/trial.h"

namespace tutti::partition {
namespace {

// How often each byte of a result moves: written and read forward; read, and its gradient written and read, backward.
constexpr double kTrainingTraffic = 5;
constexpr double kForwardTraffic = 2;
// Forward once; backward the gradient of the input and of the weight, each as much as forward.
constexpr double kTrainingFlops = 3;

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How many rows of what a model sees.
struct RowCounts {
  int64_t rows = 0;     ///< trained on per epoch
  int64_t batches = 0;  ///< per epoch
  int64_t steps = 0;
  int64_t evaluations = 0;
  int64_t evaluated_rows = 0;  ///< per evaluation
};

int64_t held_out_rows(const train::ModelSpec& spec) {
  if (spec.data.held_out <= 0) return 0;
  const data::Split split(spec.data.train->row_count(), spec.data.held_out, spec.data.seed,
                          data::Split::Part::kHeldOut);
  return split.size();
}

RowCounts count_rows(const train::ModelSpec& spec) {
  RowCounts counts;
  const int64_t held_out = held_out_rows(spec);
  counts.rows = spec.data.train->row_count() - held_out;
  counts.batches = spec.drop_last ? counts.rows / spec.batch : ceil_divide(counts.rows, spec.batch);
  const int64_t steps_per_epoch = ceil_divide(counts.batches, spec.accumulate);
  counts.steps = spec.epochs * steps_per_epoch;
  if (spec.max_steps) counts.steps = std::min(counts.steps, *spec.max_steps);
  const int64_t epochs = steps_per_epoch > 0 ? ceil_divide(counts.steps, steps_per_epoch) : 0;
  counts.evaluations = ceil_divide(epochs, std::max<int64_t>(spec.evaluate_every, 1));
  if (spec.data.validation) {
    counts.evaluated_rows += held_out > 0 ? held_out : spec.data.validation->row_count();
  }
  if (spec.data.test) counts.evaluated_rows += spec.data.test->row_count();
  return counts;
}

/// The elements of one row of a value.
int64_t row_elements(const graph::Value& value) {
  int64_t count = 1;
  for (const int64_t size : value.shape) count *= graph::size_at(size, 1);
  return count;
}

int64_t element_bytes(const graph::Value& value, const program::Program& program) {
  return static_cast<int64_t>(c10::elementSize(value.type == at::kFloat ? program.precision() : value.type));
}

/// The bytes of one row of all values of a kind.
int64_t row_bytes(const program::Program& program, graph::ValueKind kind) {
  int64_t bytes = 0;
  for (const graph::Value& value : program.graph().values) {
    if (value.kind == kind) bytes += row_elements(value) * element_bytes(value, program);
  }
  return bytes;
}

const graph::Value& output_of(const program::Program& program) {
  return program.graph().values[static_cast<size_t>(program.graph().outputs.front())];
}

/// Predicts the seconds of passes over rows.
class TimeModel {
 public:
  TimeModel(const program::Program& program, const Machine& machine)
      : machine_(machine),
        flops_(program.graph().forward_flops_per_sample() * (program.precision() == at::kDouble ? 2 : 1)),
        bytes_(static_cast<double>(row_bytes(program, graph::ValueKind::kResult))),
        instructions_(static_cast<double>(program.instructions().size())) {}

  double training_seconds(double rows) const { return pass(rows, kTrainingFlops, kTrainingTraffic, 2); }
  double forward_seconds(double rows) const { return pass(rows, 1, kForwardTraffic, 1); }

 private:
  double pass(double rows, double flops, double traffic, double calls) const {
    return rows * (flops * flops_ / machine_.flops_per_second + traffic * bytes_ / machine_.bytes_per_second) +
           calls * instructions_ * machine_.instruction_seconds;
  }

  Machine machine_;
  double flops_, bytes_, instructions_;
};

double grain_share(int64_t rows, int64_t grains) { return static_cast<double>(rows) / static_cast<double>(grains); }

/// The seconds of one grain over the whole training, from those of one micro-batch and one evaluation batch.
double grain_seconds(const train::ModelSpec& spec, double micro_batch_seconds, double evaluation_batch_seconds) {
  const RowCounts rows = count_rows(spec);
  const double evaluation_batches =
      grain_share(rows.evaluated_rows, spec.grains) / static_cast<double>(std::max<int64_t>(spec.evaluation_batch, 1));
  return static_cast<double>(rows.steps * spec.accumulate) * micro_batch_seconds +
         static_cast<double>(rows.evaluations) * evaluation_batches * evaluation_batch_seconds;
}

/// Room for every grain's statistics of an evaluation.
int64_t statistics_bytes(const train::ModelSpec& spec, const program::Program& program) {
  const auto& shape = output_of(program).shape;
  const int64_t classes = shape.size() > 1 ? shape[1] : 1;
  int64_t count = 2;  // loss and its denominator
  for (const program::Metric metric : spec.metrics) count += program::statistics_count(metric, classes);
  const int64_t parts = (spec.data.validation ? 1 : 0) + (spec.data.test ? 1 : 0);
  return parts * count * spec.grains * static_cast<int64_t>(sizeof(double));
}

MemoryCost predict_memory(const train::ModelSpec& spec, const program::Program& program) {
  const auto layout = train::ModelLayout::of(program.graph(), program.precision(), spec.optimizer.moment_count(),
                                             /*gradient_count=*/0, spec.grains);
  train::StreamedSets streams;
  streams.add(spec.data);
  return {.state_bytes = train::FusedBuffers::bytes_of(layout, program.graph()) + statistics_bytes(spec, program),
          .gradient_bytes = layout.flat_bytes(),
          .element_count = layout.element_count,
          .accumulates = spec.accumulate > 1,
          .streams = std::move(streams),
          .transient_bytes = train::predicted_lane_bytes(spec, program)};
}

}  // namespace

ModelCost predict_cost(const train::ModelSpec& spec, const program::Program& program, const Machine& machine) {
  const TimeModel time(program, machine);
  ModelCost cost{.name = spec.name, .grain_count = spec.grains, .asked_ranks = spec.ranks};
  const RowCounts rows = count_rows(spec);
  cost.row_count = rows.rows;
  cost.step_count = rows.steps;
  cost.memory = predict_memory(spec, program);
  cost.grain_seconds = grain_seconds(spec, time.training_seconds(grain_share(spec.batch, spec.grains)),
                                     time.forward_seconds(static_cast<double>(spec.evaluation_batch)));
  // Parameters and moments are read and written, the gradient is read.
  const auto passes = static_cast<double>(3 + 2 * spec.optimizer.moment_count());
  cost.update_seconds = static_cast<double>(cost.step_count) * passes *
                        static_cast<double>(cost.memory.gradient_bytes) / machine.bytes_per_second;
  return cost;
}

ModelCost with_trial(ModelCost cost, const train::ModelSpec& spec, const train::TrialResult& trial) {
  // A trial evaluates one batch of each data set, so that its time stands for as many batches.
  const int parts = (spec.data.validation ? 1 : 0) + (spec.data.test ? 1 : 0);
  cost.grain_seconds = grain_seconds(spec, trial.step_seconds / static_cast<double>(spec.accumulate),
                                     trial.evaluation_seconds / std::max(parts, 1));
  cost.memory.transient_bytes = trial.region_bytes;
  return cost;
}

ModelCost with_steps_left(ModelCost cost, int64_t steps_left) {
  if (cost.step_count == 0) return cost;
  const double share = static_cast<double>(std::max<int64_t>(steps_left, 0)) / static_cast<double>(cost.step_count);
  cost.grain_seconds *= share;
  cost.update_seconds *= share;
  return cost;
}

int64_t member_bytes(const MemoryCost& memory, const comm::Team& team, int position, int64_t lane_count) {
  constexpr int64_t kScalars = train::GrainScalars::kCount;
  const comm::GrainRun& run = team.runs[static_cast<size_t>(position)];
  int64_t gradient_count = train::GrainSum::buffer_count(run.begin, run.end, lane_count);
  if (memory.accumulates) gradient_count += std::min(lane_count, run.end - run.begin);
  int64_t bytes = memory.state_bytes + gradient_count * memory.gradient_bytes;
  if (team.runs.size() == 1) return bytes;
  const bool is_double = memory.gradient_bytes == memory.element_count * static_cast<int64_t>(sizeof(double));
  bytes += is_double ? comm::TreeSum<double>::buffer_bytes(team, position, memory.element_count, kScalars)
                     : comm::TreeSum<float>::buffer_bytes(team, position, memory.element_count, kScalars);
  return bytes;
}

double exchange_seconds(const Link& link, const comm::Team& team, int64_t gradient_bytes) {
  const auto members = static_cast<double>(team.runs.size());
  if (team.runs.size() <= 1) return 0;
  size_t most_subtrees = 0;
  for (const comm::GrainRun& run : team.runs) {
    most_subtrees = std::max(most_subtrees, comm::subtrees_of(run.begin, run.end).size());
  }
  const double pieces = (members - 1) / members * static_cast<double>(gradient_bytes);
  return 2 * (members - 1) * link.latency_seconds +
         static_cast<double>(most_subtrees + 1) * pieces * link.seconds_per_byte;
}

int64_t exchange_bytes(const comm::Team& team, int64_t gradient_bytes) {
  const auto members = static_cast<int64_t>(team.runs.size());
  if (members <= 1) return 0;
  int64_t messages = 0;  // whole gradients, were they not cut into the members' pieces
  for (const comm::GrainRun& run : team.runs) {
    messages += static_cast<int64_t>(comm::subtrees_of(run.begin, run.end).size()) + 1;
  }
  return messages * gradient_bytes / members * (members - 1);
}

}  // namespace tutti::partition
