// One model's training on one rank: a state machine which lanes and the communication thread drive.
#ifndef TUTTI_SRC_TRAIN_MODEL_RUN_H
#define TUTTI_SRC_TRAIN_MODEL_RUN_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/program/program.h"
#include "src/train/calendar.h"
#include "src/train/evaluation.h"
#include "src/train/grain_sum.h"
#include "src/train/grain_trainer.h"
#include "src/train/lane.h"
#include "src/train/model_files.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"
#include "src/train/model_update.h"
#include "src/train/progress.h"
#include "src/train/run_report.h"
#include "src/train/team_exchange.h"
#include "src/train/trace.h"

namespace tutti::train {

/// What a ModelRun is made of.
struct ModelRunSetup {
  const ModelSpec* spec = nullptr;
  std::shared_ptr<const program::Program> program;
  /// The model's own graph: equal to the program's but for names and first values, which models of a group may differ
  /// in.
  std::shared_ptr<const graph::Graph> graph;
  TeamLine line;
  int rank = 0;
  int64_t lane_count = 1;
  std::filesystem::path folder;               ///< OUT/models/NAME
  const StoredCheckpoint* resumed = nullptr;  ///< null: from the start
  const std::atomic<bool>* stop = nullptr;    ///< set when the job should stop at the next step boundary
  std::function<void()> notify;               ///< called when there may be work for a lane again
  Trace* trace = nullptr;
  std::string pause_reason;  ///< not empty: the model is not trained, and says so
};

/// The step, as lanes see it:
///   A) the grains this rank owns, by any lanes, in any order: forward, loss, backward into a gradient of the pool
///   B) their sum in tree order, over the team if there is one
///   C) one lane applies the optimizer
///   D) at an epoch's end: evaluation, by grains too, and its sum
///   E) at a checkpoint: the members' running statistics come together, the first member writes
/// Whatever throws ends this model, on every member, with its own message: in a team, the members learn of it by the
/// word of the next sum.
class ModelRun {
 public:
  /// Requires that the memory has the layout that layout_for() gives. Throws what DataSet, safetensors and checkpoints
  /// throw.
  ModelRun(ModelRunSetup setup, ModelMemory memory);

  /// The memory a model needs on this rank.
  static ModelLayout layout_for(const ModelSpec& spec, const graph::Graph& graph, const comm::GrainRun& run,
                                int64_t lane_count);

  /// Any thread: true when a lane that calls work() would find something to do.
  bool has_work() const;

  /// A lane works for this model until `until`, or until nothing is left that it could do now.
  void work(Lane& lane, std::chrono::steady_clock::time_point until);

  /// Any thread: how much of the training is done, 0 to 1.
  double done_fraction() const;
  bool ended() const;
  ModelReport report() const { return report_.get(); }

  const ModelSpec& spec() const { return *setup_.spec; }
  bool is_first_member() const { return first_member_; }

 private:
  enum class Stage { kTrain, kUpdate, kShared, kEvaluate, kConclude, kWaiting, kEnded };
  enum class AfterShare { kEvaluate, kWrite };
  struct Claim {
    Stage stage = Stage::kWaiting;  // kWaiting: nothing to do
    int64_t grain = 0;
    int buffer = 0;
    int slot = 0;
  };

  std::optional<Claim> claim();
  void advance(Lane& lane, const Claim& claim);
  template <typename Action>
  void guard(const Action& action);
  void run_grain(Lane& lane, const Claim& claim);
  void finish_sum(GrainSum& sum, Stage next);
  void update();
  void settle_epoch();
  void share_then(AfterShare next);
  void after_share();
  void conclude();
  void settle_step();
  void write();
  bool store(bool last);
  void write_best();
  void begin(Stage stage);
  void begin_step();
  void end(ModelState state, const std::string& reason = {});
  void log_epoch(const nlohmann::json& results);
  bool alone() const { return setup_.line.team.runs.size() == 1; }
  bool is_done() const { return calendar_.is_done(progress_.step) || progress_.stopped_early; }
  void keep_error(const std::exception& error);
  bool has_error() const;
  std::string take_error();

  ModelRunSetup setup_;
  ModelMemory memory_;
  TrainingSource source_;
  Calendar calendar_;
  comm::GrainRun run_;
  bool first_member_;
  int64_t slot_count_;
  GrainTrainer trainer_;
  Evaluation evaluation_;
  ModelUpdate updater_;
  GrainSum gradient_sum_, evaluation_sum_;
  std::optional<ModelFiles> files_;  // the first member's

  // Guarded by mutex_: which stage there is work in, and what of it is taken.
  mutable std::mutex mutex_;
  Stage stage_ = Stage::kWaiting;
  bool stage_taken_ = false;
  int64_t visitor_count_ = 0;
  int64_t next_grain_ = 0;
  std::vector<int> free_slots_;
  std::string error_;

  // Touched by one thread at a time: whoever holds the stage.
  Progress progress_;
  SumOutcome outcome_;
  int summed_buffer_ = 0;
  AfterShare after_share_ = AfterShare::kWrite;
  bool stopping_ = false;
  bool checkpoint_voted_ = false;
  int64_t shared_step_ = -1;
  std::chrono::steady_clock::time_point last_checkpoint_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  std::atomic<int64_t> steps_done_ = 0;
  RunReport report_;
};

}  // namespace tutti::train

#endif
