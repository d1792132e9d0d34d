// One model's training on one rank, piece by piece: what a grain, an update, an evaluation and a checkpoint are.
#ifndef TUTTI_SRC_TRAIN_MODEL_TRAINING_H
#define TUTTI_SRC_TRAIN_MODEL_TRAINING_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/program/program.h"
#include "src/train/calendar.h"
#include "src/train/evaluation.h"
#include "src/train/grain_trainer.h"
#include "src/train/model_files.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"
#include "src/train/model_update.h"
#include "src/train/progress.h"
#include "src/train/run_report.h"
#include "src/train/trace.h"

namespace tutti::train {

/// What a ModelTraining is made of.
struct TrainingSetup {
  enum class Files { kNone, kWritten };

  const ModelSpec* spec = nullptr;
  std::shared_ptr<const program::Program> program;
  /// The model's own graph: equal to the program's but for names and first values, which models of a group may differ
  /// in.
  std::shared_ptr<const graph::Graph> graph;
  std::filesystem::path folder;               ///< OUT/models/NAME
  Files files = Files::kNone;                 ///< written by the team's first member
  const StoredCheckpoint* resumed = nullptr;  ///< null: from the start
  int64_t slot_count = 1;                     ///< how many grains may be at work at the same time
  Trace* trace = nullptr;
};

/// Knows nothing of lanes, other ranks and who does what when. compute_gradient() and evaluate() may be called by
/// several lanes at once, each with its own slot, and the functions of the last group by any thread; all else by one
/// thread at a time, while no grain is at work. Everything may throw.
class ModelTraining {
 public:
  /// Initialises the memory, or restores it. Throws what DataSet, safetensors and checkpoints throw.
  ModelTraining(TrainingSetup setup, ModelMemory memory);

  // A step: its grains' gradients, then with their sum over the whole team the four below, in this order.

  /// The gradient of a grain of the next step into pool entry `buffer`; returns its scalars.
  std::vector<double> compute_gradient(int64_t grain, int buffer, int slot);

  /// The L2 norm of the summed gradient.
  double gradient_norm(const at::Tensor& gradient, std::span<const double> scalars) const;

  /// Why these sums cannot be applied; empty when they can.
  std::string fault_of(std::span<const double> scalars, double norm) const;

  /// Logs the step and applies the optimizer.
  void apply(const at::Tensor& gradient, std::span<const double> scalars, double norm);

  /// The step is done.
  void count_step(std::span<const double> scalars);

  // What follows a step.

  bool is_done() const { return calendar_.is_done(progress_.step) || progress_.stopped_early; }
  bool at_epoch_end() const { return calendar_.is_epoch_end(progress_.step); }
  bool evaluation_due() const { return evaluation_.has_rows() && calendar_.evaluation_due(progress_.step); }
  bool checkpoint_due() const { return checkpoint_voted_ || calendar_.checkpoint_due(progress_.step); }

  /// Brings the averaged buffers up to date with those of all grains.
  void average_buffers();

  /// The statistics of the evaluated rows that go with a grain.
  std::vector<double> evaluate(int64_t grain, int slot) { return evaluation_.compute(grain, slot); }

  /// Ends an epoch with an evaluation, of the sum of all grains' statistics; or without one.
  void end_epoch(std::span<const double> statistics);
  void end_epoch() { log_epoch(nullptr); }

  /// Writes a checkpoint, the last one with the final weights. False when one that is not the last could not be
  /// written. Only where files are written.
  bool store();

  /// Ends the training in this state; says so, where files are written.
  void end(ModelState state, const std::string& reason);

  /// False when the graph has no running statistics, and average_buffers() nothing to do.
  bool has_buffers() const { return !memory_.averaged_buffers.empty(); }
  const ModelMemory& memory() const { return memory_; }

  // By any thread. What these read changes between steps alone, before grains of the next one can be claimed.

  /// How many numbers evaluate() returns.
  int64_t statistics_count() const { return evaluation_.statistics_count(); }
  bool writes_files() const { return files_.has_value(); }
  /// True when the minutes between checkpoints have passed.
  bool votes_for_checkpoint() const;
  const ModelSpec& spec() const { return *setup_.spec; }
  int64_t step() const { return steps_done_; }
  double done_fraction() const;
  ModelReport report() const { return report_.get(); }

 private:
  void initialise();
  void write_best();
  void log_epoch(const nlohmann::json& results);

  TrainingSetup setup_;
  ModelMemory memory_;
  TrainingSource source_;
  Calendar calendar_;
  GrainTrainer trainer_;
  Evaluation evaluation_;
  ModelUpdate updater_;
  std::optional<ModelFiles> files_;
  Progress progress_;
  bool checkpoint_voted_ = false;
  std::chrono::steady_clock::time_point last_checkpoint_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  std::atomic<int64_t> steps_done_ = 0;
  RunReport report_;
};

}  // namespace tutti::train

#endif
