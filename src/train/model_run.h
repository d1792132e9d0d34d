// One model's run on one rank: the order of its training's pieces, which lanes and the communication thread drive.
#ifndef TUTTI_SRC_TRAIN_MODEL_RUN_H
#define TUTTI_SRC_TRAIN_MODEL_RUN_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "src/train/grain_desk.h"
#include "src/train/lane.h"
#include "src/train/model_training.h"
#include "src/train/team_exchange.h"

namespace tutti::train {

/// What a ModelRun is made of.
struct ModelRunSetup {
  TrainingSetup training;  ///< without `files` and `slot_count`, which follow from what stands below
  TeamLine line;
  int rank = 0;
  int64_t lane_count = 1;
  const std::atomic<bool>* stop = nullptr;  ///< set when the job should stop at the next step boundary
  std::function<void()> notify;             ///< called when there may be work for a lane again
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
  /// Requires that the memory has the layout that layout_for() gives. Throws what ModelTraining does.
  ModelRun(ModelRunSetup setup, ModelMemory memory);

  /// The memory a model needs on this rank.
  static ModelLayout layout_for(const ModelSpec& spec, const graph::Graph& graph, const comm::GrainRun& run,
                                int64_t lane_count);

  /// Any thread: true when a lane that calls work() would find something to do.
  bool has_work() const { return desk_.has_work(); }

  /// A lane works for this model until `until`, or until nothing is left that it could do now.
  void work(Lane& lane, std::chrono::steady_clock::time_point until);

  /// Any thread: how much of the training is done, 0 to 1.
  double done_fraction() const { return training_.done_fraction(); }
  bool ended() const { return desk_.ended(); }
  ModelReport report() const { return training_.report(); }

  const ModelSpec& spec() const { return training_.spec(); }
  bool is_first_member() const { return training_.writes_files(); }

 private:
  enum class AfterShare { kEvaluate, kWrite };

  void advance(Lane& lane, const Claim& claim);
  template <typename Action>
  void guard(const Action& action);
  void run_grain(Lane& lane, const Claim& claim);
  std::vector<double> compute(Lane& lane, const Claim& claim);
  void finish_sum(Stage summed, Stage next);
  void post(Stage summed, Stage next, comm::Word word);
  void update();
  void settle_epoch();
  void share_then(AfterShare next);
  void after_share();
  void conclude();
  void settle_step();
  void write();
  void begin_grains(Stage stage);
  void end(ModelState state, const std::string& reason = {});
  bool alone() const { return line_.team.runs.size() == 1; }
  void keep_error(const std::exception& error);
  bool has_error() const;
  std::string take_error();

  TeamLine line_;
  comm::GrainRun run_;
  const std::atomic<bool>* stop_;
  std::function<void()> notify_;
  Trace* trace_;
  ModelTraining training_;
  GrainDesk desk_;

  mutable std::mutex error_mutex_;
  std::string error_;  // guarded by error_mutex_

  // Touched by one thread at a time: whoever holds the stage.
  SumOutcome outcome_;
  int summed_buffer_ = 0;
  AfterShare after_share_ = AfterShare::kWrite;
  bool stopping_ = false;
  int64_t shared_step_;
};

}  // namespace tutti::train

#endif
