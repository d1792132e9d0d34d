// One model's run on one rank: the order of its training's pieces.
#include "src/train/model_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "src/train/fault_point.h"
#include "src/train/fault_text.h"

namespace tutti::train {

using Clock = std::chrono::steady_clock;

namespace {

const comm::GrainRun& own_run(const ModelRunSetup& setup) {
  return setup.line.team.runs.at(static_cast<size_t>(setup.line.team.position_of(setup.rank)));
}

TrainingSetup training_of(ModelRunSetup& setup) {
  TrainingSetup training = std::move(setup.training);
  const bool first = setup.line.team.position_of(setup.rank) == 0;
  training.files = first ? TrainingSetup::Files::kWritten : TrainingSetup::Files::kNone;
  training.slot_count = GrainDesk::slot_count(own_run(setup), setup.lane_count);
  return training;
}

/// The part of a model's gradients that grains are summed in; the others are scratch.
std::vector<at::Tensor> summed_gradients(const ModelMemory& memory, const comm::GrainRun& run, int64_t lane_count) {
  const auto begin = memory.gradients.begin();
  return {begin, begin + GrainSum::buffer_count(run.begin, run.end, lane_count)};
}

}  // namespace

ModelLayout ModelRun::layout_for(const ModelSpec& spec, const graph::Graph& graph, const comm::GrainRun& run,
                                 int64_t lane_count) {
  const int64_t gradients = GrainSum::buffer_count(run.begin, run.end, lane_count) +
                            GrainTrainer::scratch_count(spec, GrainDesk::slot_count(run, lane_count));
  return ModelLayout::of(graph, spec.double_precision ? at::kDouble : at::kFloat, spec.optimizer.moment_count(),
                         gradients, spec.grains);
}

ModelRun::ModelRun(ModelRunSetup setup, ModelMemory memory)
    : line_(setup.line),
      run_(own_run(setup)),
      stop_(setup.stop),
      notify_(setup.notify),
      trace_(setup.training.trace),
      training_(training_of(setup), std::move(memory)),
      desk_(run_, setup.lane_count, summed_gradients(training_.memory(), run_, setup.lane_count)),
      shared_step_(training_.step()) {
  if (training_.is_done()) {
    after_share_ = AfterShare::kWrite;
    desk_.begin(Stage::kShared);
  } else {
    begin_grains(Stage::kTrain);
  }
}

void ModelRun::work(Lane& lane, Clock::time_point until) {
  if (!desk_.enter()) return;
  const auto began = Clock::now();
  const int64_t first_step = training_.step();
  bool worked = false;
  try {
    do {
      const auto claim = desk_.claim();
      if (!claim) break;
      worked = true;
      advance(lane, *claim);
      lane.work_count.fetch_add(1, std::memory_order_relaxed);
    } while (Clock::now() < until);
  } catch (const std::exception& error) {
    // What guard() has not caught in a team's member: the others wait for its next message, which will not come.
    if (!alone()) throw;
    end(ModelState::kFailed, fault_text(error));
  }
  desk_.leave();
  if (worked) trace_->record("visit", spec().name, lane.index, began, Clock::now(), first_step, training_.step());
}

/// An exception in a team's member must not keep it from its next message, for which the others wait: it goes on, and
/// that message's word tells them.
template <typename Action>
void ModelRun::guard(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    if (alone()) throw;
    keep_error(error);
  }
}

void ModelRun::advance(Lane& lane, const Claim& claim) {
  switch (claim.stage) {
    case Stage::kTrain:
    case Stage::kEvaluate:
      return run_grain(lane, claim);
    case Stage::kUpdate:
      return update();
    case Stage::kShared:
      return after_share();
    case Stage::kConclude:
      return conclude();
    case Stage::kWaiting:
    case Stage::kEnded:
      return;
  }
}

void ModelRun::run_grain(Lane& lane, const Claim& claim) {
  const bool training = claim.stage == Stage::kTrain;
  std::vector<double> scalars;
  try {
    scalars = compute(lane, claim);
  } catch (const std::exception& error) {
    const int64_t count = training ? int64_t{GrainScalars::kCount} : training_.statistics_count();
    scalars.assign(static_cast<size_t>(count), 0.0);
    keep_error(error);
  }
  const bool may_vote = training && is_first_member() && claim.grain == run_.begin;
  if (may_vote && training_.votes_for_checkpoint()) scalars[GrainScalars::kCheckpointVotes] = 1;
  if (desk_.finish(claim, std::move(scalars))) finish_sum(claim.stage, training ? Stage::kUpdate : Stage::kConclude);
}

std::vector<double> ModelRun::compute(Lane& lane, const Claim& claim) {
  const program::LaneRegion::Use use(lane.region);
  std::vector<double> scalars = claim.stage == Stage::kTrain
                                    ? training_.compute_gradient(claim.grain, claim.buffer, claim.slot)
                                    : training_.evaluate(claim.grain, claim.slot);
  lane.region_extent = lane.region.extent_bytes();
  return scalars;
}

void ModelRun::finish_sum(Stage summed, Stage next) {
  comm::Word word{*stop_, take_error()};
  if (!alone()) return post(summed, next, std::move(word));
  const GrainSum::Part sum = desk_.parts(summed).front();
  summed_buffer_ = sum.buffer;
  outcome_ = {sum.scalars, {word.stop_requested, std::move(word.error)}};
  desk_.begin(next);
}

/// Leaves the sum over the team to the communication thread, which begins the next stage.
void ModelRun::post(Stage summed, Stage next, comm::Word word) {
  const std::vector<GrainSum::Part> parts = desk_.parts(summed);
  summed_buffer_ = parts.front().buffer;
  std::vector<at::Tensor> flats;
  std::vector<std::vector<double>> scalars;
  for (const GrainSum::Part& part : parts) {
    if (summed == Stage::kTrain) flats.push_back(desk_.gradient(part.buffer));
    scalars.push_back(part.scalars);
  }
  desk_.begin(Stage::kWaiting);
  if (fault_due("sum lost", spec().name)) return;
  const auto began = Clock::now();
  const int64_t step = training_.step();
  post_sum(line_, std::move(flats), std::move(scalars), std::move(word),
           fmt::format("sum of model {}, step {}", spec().name, step + 1),
           [this, next, began, step](SumOutcome outcome) {
             trace_->record("exchange", spec().name, Trace::kExchange, began, Clock::now(), step, step);
             outcome_ = std::move(outcome);
             desk_.begin(next);
             notify_();
           });
}

void ModelRun::update() {
  if (!outcome_.verdict.error.empty()) return end(ModelState::kFailed, outcome_.verdict.error);
  const at::Tensor& gradient = desk_.gradient(summed_buffer_);
  const std::vector<double>& scalars = outcome_.scalars;
  double norm = 0;
  guard([&] { norm = training_.gradient_norm(gradient, scalars); });
  const std::string fault = training_.fault_of(scalars, norm);
  if (!fault.empty()) return end(ModelState::kFailed, fault);
  guard([&] { training_.apply(gradient, scalars, norm); });
  training_.count_step(scalars);
  stopping_ = stopping_ || outcome_.verdict.stop_requested;
  training_.at_epoch_end() ? settle_epoch() : settle_step();
}

void ModelRun::settle_epoch() {
  if (training_.evaluation_due()) return share_then(AfterShare::kEvaluate);
  training_.end_epoch();
  settle_step();
}

void ModelRun::share_then(AfterShare next) {
  after_share_ = next;
  if (alone() || !training_.has_buffers() || shared_step_ == training_.step()) return after_share();
  desk_.begin(Stage::kWaiting);
  post_share(line_, training_.memory().grain_blocks.narrow(0, 0, spec().grains),
             fmt::format("running statistics of model {}, step {}", spec().name, training_.step()), [this] {
               desk_.begin(Stage::kShared);
               notify_();
             });
}

void ModelRun::after_share() {
  if (shared_step_ != training_.step()) guard([&] { training_.average_buffers(); });
  shared_step_ = training_.step();
  after_share_ == AfterShare::kWrite ? write() : begin_grains(Stage::kEvaluate);
}

void ModelRun::conclude() {
  if (!outcome_.verdict.error.empty()) return end(ModelState::kFailed, outcome_.verdict.error);
  stopping_ = stopping_ || outcome_.verdict.stop_requested;
  guard([&] { training_.end_epoch(outcome_.scalars); });
  settle_step();
}

void ModelRun::settle_step() {
  if (training_.checkpoint_due() || training_.is_done() || stopping_) return share_then(AfterShare::kWrite);
  begin_grains(Stage::kTrain);
}

void ModelRun::write() {
  const bool done = training_.is_done();
  bool written = true;
  if (is_first_member() && !has_error()) guard([&] { written = training_.store(); });
  if (has_error() && (done || stopping_)) return end(ModelState::kFailed, take_error());
  if (done) return end(ModelState::kFinished);
  if (!stopping_) return begin_grains(Stage::kTrain);
  end(ModelState::kCheckpointed, written ? "" : "the last checkpoint could not be written");
}

void ModelRun::begin_grains(Stage stage) {
  desk_.begin(stage);
  if (desk_.slot_count() > 1) notify_();
}

void ModelRun::end(ModelState state, const std::string& reason) {
  training_.end(state, reason);
  desk_.begin(Stage::kEnded);
  notify_();
}

/// Of several errors the first one tells what happened.
void ModelRun::keep_error(const std::exception& error) {
  const std::lock_guard lock(error_mutex_);
  if (error_.empty()) error_ = fault_text(error);
}

bool ModelRun::has_error() const {
  const std::lock_guard lock(error_mutex_);
  return !error_.empty();
}

std::string ModelRun::take_error() {
  const std::lock_guard lock(error_mutex_);
  return std::exchange(error_, {});
}

}  // namespace tutti::train
