// One model's training on one rank, piece by piece.
#include "src/train/model_training.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <utility>

#include "src/graph/initialise.h"
#include "src/train/buffer_average.h"
#include "src/train/fault_point.h"
#include "src/train/observation.h"

namespace tutti::train {

using Clock = std::chrono::steady_clock;

ModelTraining::ModelTraining(TrainingSetup setup, ModelMemory memory)
    : setup_(std::move(setup)),
      memory_(std::move(memory)),
      source_(*setup_.spec),
      calendar_(*setup_.spec, source_.batches_per_epoch()),
      trainer_(*setup_.spec, setup_.program, memory_, source_, setup_.slot_count),
      evaluation_(*setup_.spec, setup_.program, memory_, setup_.slot_count),
      updater_(*setup_.spec, *setup_.graph, memory_),
      last_checkpoint_(Clock::now()) {
  if (setup_.resumed != nullptr) {
    progress_ = restore(*setup_.resumed, spec(), *setup_.graph, memory_);
  } else {
    initialise();
  }
  average_buffers();
  steps_done_ = progress_.step;
  if (setup_.files == TrainingSetup::Files::kWritten) files_.emplace(setup_.folder, spec(), setup_.resumed);
  setup_.resumed = nullptr;  // need not outlive the constructor
  report_.publish_evaluation(progress_.last_evaluation);
  report_.publish(progress_, calendar_);
}

void ModelTraining::initialise() {
  const graph::Graph& graph = *setup_.graph;
  progress_.grain_rows.assign(static_cast<size_t>(spec().grains), 0);
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    graph::initialise(graph.parameters[p], static_cast<int64_t>(p), spec().seed, memory_.parameter_views[p]);
  }
  if (!spec().init_file.empty()) load_weights(spec().init_file, graph, memory_);
}

std::vector<double> ModelTraining::compute_gradient(int64_t grain, int buffer, int slot) {
  return trainer_.compute(calendar_.batches_after(progress_.step), progress_.step, grain, buffer, slot);
}

double ModelTraining::gradient_norm(const at::Tensor& gradient, std::span<const double> scalars) const {
  return updater_.gradient_norm(gradient, scalars[GrainScalars::kDenominator]);
}

std::string ModelTraining::fault_of(std::span<const double> scalars, double norm) const {
  const double denominator = scalars[GrainScalars::kDenominator];
  if (denominator == 0) {
    return fmt::format(
        "step {}: expected a label that counts in the batch, found all with the loss's ignore_index or of "
        "classes with weight 0; use larger batches, or take these rows out of the data",
        progress_.step + 1);
  }
  if (!std::isfinite(scalars[GrainScalars::kLoss] / denominator)) {
    return fmt::format("non-finite loss at step {}", progress_.step + 1);
  }
  return std::isfinite(norm) ? "" : fmt::format("non-finite gradient at step {}", progress_.step + 1);
}

void ModelTraining::apply(const at::Tensor& gradient, std::span<const double> scalars, double norm) {
  const double denominator = scalars[GrainScalars::kDenominator];
  const Rates now = calendar_.rates_after(progress_.step, progress_.plateau.lr);
  if (files_ && calendar_.log_due(progress_.step + 1)) {
    const double loss = scalars[GrainScalars::kLoss] / denominator;
    files_->log(step_line(progress_.step + 1, calendar_, loss, norm, now.lr));
  }
  fault_point("update", spec().name);
  updater_.apply(gradient, denominator, norm, progress_.step, now);
}

void ModelTraining::count_step(std::span<const double> scalars) {
  const StepBatches batches = calendar_.batches_after(progress_.step);
  for (int64_t b = batches.first_batch; b < batches.last_batch; ++b) {
    for (size_t g = 0; g < progress_.grain_rows.size(); ++g) {
      progress_.grain_rows[g] += source_.grain_rows(b, static_cast<int64_t>(g)).count();
    }
  }
  progress_.epoch_loss_sum += scalars[GrainScalars::kLoss];
  progress_.epoch_denominator += scalars[GrainScalars::kDenominator];
  checkpoint_voted_ = scalars[GrainScalars::kCheckpointVotes] > 0;
  steps_done_ = ++progress_.step;
  report_.publish(progress_, calendar_);
}

void ModelTraining::average_buffers() { train::average_buffers(memory_, progress_.grain_rows); }

void ModelTraining::end_epoch(std::span<const double> statistics) {
  const nlohmann::json results = evaluation_.results(statistics);
  if (observe(spec(), results, progress_) && files_) write_best();
  report_.publish_evaluation(results);
  log_epoch(results);
}

void ModelTraining::write_best() {
  try {
    files_->write_weights("best", make_checkpoint(spec(), *setup_.graph, memory_, progress_).weights);
  } catch (const std::exception& error) {
    spdlog::warn("model {}: the best weights, of step {}, could not be written ({}); training goes on", spec().name,
                 progress_.step, error.what());
  }
}

void ModelTraining::log_epoch(const nlohmann::json& results) {
  progress_.last_train_loss = progress_.epoch_loss_sum / progress_.epoch_denominator;
  progress_.epoch_loss_sum = progress_.epoch_denominator = 0;
  report_.publish(progress_, calendar_);
  if (!files_) return;
  files_->log(epoch_line(progress_, calendar_, results));
  files_->log_timing({{"epoch", calendar_.epoch_ended(progress_.step)},
                      {"step", progress_.step},
                      {"seconds", std::chrono::duration<double>(Clock::now() - started_).count()}});
}

bool ModelTraining::votes_for_checkpoint() const {
  const double minutes = spec().checkpoint.every_minutes;
  return minutes > 0 && Clock::now() - last_checkpoint_ > std::chrono::duration<double>(60 * minutes);
}

bool ModelTraining::store() {
  const auto began = Clock::now();
  fault_point("store", spec().name);
  const Checkpoint checkpoint = make_checkpoint(spec(), *setup_.graph, memory_, progress_);
  bool written = true;
  if (is_done()) {
    files_->write_last(checkpoint);
  } else {
    written = files_->write_checkpoint(checkpoint);
  }
  last_checkpoint_ = Clock::now();
  setup_.trace->record("checkpoint", spec().name, Trace::kExchange + 1, began, Clock::now(), progress_.step,
                       progress_.step);
  return written;
}

void ModelTraining::end(ModelState state, const std::string& reason) {
  const std::string text = as_utf8(reason);
  if (state == ModelState::kFailed && files_) {
    spdlog::error("model {} failed: {}", spec().name, text);
    files_->log({{"event", "failed"}, {"step", progress_.step}, {"reason", text}});
  }
  report_.publish(progress_, calendar_);
  report_.end(state, text);
}

double ModelTraining::done_fraction() const {
  const auto total = static_cast<double>(calendar_.total_steps());
  return total == 0 ? 1.0 : static_cast<double>(steps_done_) / total;
}

}  // namespace tutti::train
