// Where lanes get a model's work: which grain, or which single piece of work, may begin now, and who has taken it.
#ifndef TUTTI_SRC_TRAIN_GRAIN_DESK_H
#define TUTTI_SRC_TRAIN_GRAIN_DESK_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/team.h"
#include "src/train/grain_sum.h"

namespace tutti::train {

/// What there is to do for a model on this rank. In kTrain and kEvaluate the rank's grains are given out, one by one,
/// to any lanes; kUpdate, kShared and kConclude are one piece of work for one lane; in the other two there is none.
enum class Stage { kTrain, kUpdate, kShared, kEvaluate, kConclude, kWaiting, kEnded };

constexpr bool gives_grains(Stage stage) { return stage == Stage::kTrain || stage == Stage::kEvaluate; }

/// A piece of work that a lane has taken.
struct Claim {
  Stage stage = Stage::kWaiting;
  int64_t grain = 0;  ///< the rest only where the stage gives grains
  int buffer = 0;     ///< of the pool, for the grain's gradient
  int slot = 0;       ///< no two grains at work have the same one
};

/// Gives out the grains that one rank owns, in ascending order, and collects what they come to. Any thread may call any
/// member function; begin() only the one that holds the stage: the lane with its claim, or with its last grain, or the
/// communication thread while the stage is kWaiting.
class GrainDesk {
 public:
  /// How many grains may be at work at the same time.
  static int64_t slot_count(const comm::GrainRun& run, int64_t lane_count);

  /// `pool` holds the flat gradients that GrainSum::buffer_count() asks for. The stage is kWaiting.
  GrainDesk(const comm::GrainRun& run, int64_t lane_count, std::vector<at::Tensor> pool);

  /// Goes to another stage. One that gives grains begins with the first of them and an empty sum.
  void begin(Stage stage);

  /// True when a lane that comes now would find something to do.
  bool has_work() const;

  /// A lane comes, unless there are as many as slots already; who came must leave().
  bool enter();
  void leave();

  /// The next piece of work, if there is one.
  std::optional<Claim> claim();

  /// Hands in the grain of a claim. True for the caller whose grain was the last one: it holds the stage from then on.
  bool finish(const Claim& claim, std::vector<double> scalars);

  /// What the grains of a stage came to, once the last one is handed in.
  std::vector<GrainSum::Part> parts(Stage stage) const { return sum_of(stage).parts(); }

  /// The gradient in a buffer of the pool.
  const at::Tensor& gradient(int buffer) const { return gradient_sum_.buffer(buffer); }

  bool ended() const;
  int64_t slot_count() const { return slot_count_; }

 private:
  GrainSum& sum_of(Stage stage) { return stage == Stage::kTrain ? gradient_sum_ : evaluation_sum_; }
  const GrainSum& sum_of(Stage stage) const { return stage == Stage::kTrain ? gradient_sum_ : evaluation_sum_; }
  std::optional<Claim> claim_grain();

  comm::GrainRun run_;
  int64_t slot_count_;
  GrainSum gradient_sum_, evaluation_sum_;

  mutable std::mutex mutex_;  // guards all below
  Stage stage_ = Stage::kWaiting;
  bool stage_taken_ = false;
  int64_t visitor_count_ = 0;
  int64_t next_grain_ = 0;
  std::vector<int> free_slots_;
};

}  // namespace tutti::train

#endif
