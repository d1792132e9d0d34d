#include "src/train/model_run.h"

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

namespace {

const comm::GrainRun& own_run(const ModelRunSetup& setup) {
  return setup.line.team.runs.at(static_cast<size_t>(setup.line.team.position_of(setup.rank)));
}

int64_t slots_for(const comm::GrainRun& run, int64_t lane_count) { return std::min(run.end - run.begin, lane_count); }

std::vector<at::Tensor> first_of(const std::vector<at::Tensor>& pool, int64_t count) {
  return {pool.begin(), pool.begin() + count};
}

void initialise_parameters(const ModelSpec& spec, const graph::Graph& graph, ModelMemory& memory) {
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    graph::initialise(graph.parameters[p], static_cast<int64_t>(p), spec.seed, memory.parameter_views[p]);
  }
  if (!spec.init_file.empty()) load_weights(spec.init_file, graph, memory);
}

}  // namespace

ModelLayout ModelRun::layout_for(const ModelSpec& spec, const graph::Graph& graph, const comm::GrainRun& run,
                                 int64_t lane_count) {
  const int64_t gradients = GrainSum::buffer_count(run.begin, run.end, lane_count) +
                            GrainTrainer::scratch_count(spec, slots_for(run, lane_count));
  return ModelLayout::of(graph, spec.double_precision ? at::kDouble : at::kFloat, spec.optimizer.moment_count(),
                         gradients, spec.grains);
}

ModelRun::ModelRun(ModelRunSetup setup, ModelMemory memory)
    : setup_(std::move(setup)),
      memory_(std::move(memory)),
      source_(*setup_.spec),
      calendar_(*setup_.spec, source_.batches_per_epoch()),
      run_(own_run(setup_)),
      first_member_(setup_.line.team.position_of(setup_.rank) == 0),
      slot_count_(slots_for(run_, setup_.lane_count)),
      trainer_(*setup_.spec, setup_.program, memory_, source_, slot_count_),
      evaluation_(*setup_.spec, setup_.program, memory_, slot_count_),
      updater_(*setup_.spec, *setup_.graph, memory_),
      gradient_sum_(run_.begin, run_.end,
                    first_of(memory_.gradients, GrainSum::buffer_count(run_.begin, run_.end, setup_.lane_count))),
      evaluation_sum_(run_.begin, run_.end, {}),
      last_checkpoint_(Clock::now()) {
  const ModelSpec& spec = *setup_.spec;
  const graph::Graph& graph = *setup_.graph;
  for (int slot = static_cast<int>(slot_count_); slot-- > 0;) free_slots_.push_back(slot);
  if (setup_.resumed != nullptr) {
    progress_ = restore(*setup_.resumed, spec, graph, memory_);
  } else {
    progress_.grain_rows.assign(static_cast<size_t>(spec.grains), 0);
    initialise_parameters(spec, graph, memory_);
  }
  average_buffers(memory_, progress_.grain_rows);
  shared_step_ = steps_done_ = progress_.step;
  if (first_member_) files_.emplace(setup_.folder, spec, setup_.resumed);
  report_.publish_evaluation(progress_.last_evaluation);
  report_.publish(progress_, calendar_);
  if (!setup_.pause_reason.empty()) {
    end(ModelState::kPaused, setup_.pause_reason);
  } else if (is_done()) {
    after_share_ = AfterShare::kWrite;
    begin(Stage::kShared);
  } else {
    begin_step();
  }
}

bool ModelRun::has_work() const {
  const std::lock_guard lock(mutex_);
  if (visitor_count_ >= slot_count_) return false;
  switch (stage_) {
    case Stage::kTrain:
      return next_grain_ < run_.end && !free_slots_.empty() && gradient_sum_.has_room();
    case Stage::kEvaluate:
      return next_grain_ < run_.end && !free_slots_.empty();
    case Stage::kUpdate:
    case Stage::kShared:
    case Stage::kConclude:
      return !stage_taken_;
    case Stage::kWaiting:
    case Stage::kEnded:
      return false;
  }
  return false;
}

std::optional<ModelRun::Claim> ModelRun::claim() {
  const std::lock_guard lock(mutex_);
  Claim claim{stage_, 0, 0, 0};
  switch (stage_) {
    case Stage::kTrain:
    case Stage::kEvaluate: {
      if (next_grain_ >= run_.end || free_slots_.empty()) return std::nullopt;
      const auto buffer = (stage_ == Stage::kTrain ? gradient_sum_ : evaluation_sum_).acquire();
      if (!buffer) return std::nullopt;
      claim.grain = next_grain_++;
      claim.buffer = *buffer;
      claim.slot = free_slots_.back();
      free_slots_.pop_back();
      return claim;
    }
    case Stage::kUpdate:
    case Stage::kShared:
    case Stage::kConclude:
      if (std::exchange(stage_taken_, true)) return std::nullopt;
      return claim;
    case Stage::kWaiting:
    case Stage::kEnded:
      return std::nullopt;
  }
  return std::nullopt;
}

void ModelRun::work(Lane& lane, Clock::time_point until) {
  {
    const std::lock_guard lock(mutex_);
    if (visitor_count_ >= slot_count_) return;
    ++visitor_count_;
  }
  const auto began = Clock::now();
  const int64_t first_step = steps_done_;
  bool worked = false;
  try {
    do {
      const auto claimed = claim();
      if (!claimed) break;
      worked = true;
      advance(lane, *claimed);
      lane.work_count.fetch_add(1, std::memory_order_relaxed);
    } while (Clock::now() < until);
  } catch (const std::exception& error) {
    // What guard() has not caught in a team's member: the others wait for its next message, which will not come.
    if (!alone()) throw;
    end(ModelState::kFailed, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    --visitor_count_;
  }
  if (worked) setup_.trace->record("visit", spec().name, lane.index, began, Clock::now(), first_step, steps_done_);
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
    const program::LaneRegion::Use use(lane.region);
    scalars = training ? trainer_.compute(calendar_.batches_after(progress_.step), progress_.step, claim.grain,
                                          claim.buffer, claim.slot)
                       : evaluation_.compute(claim.grain, claim.slot);
    lane.region_extent = lane.region.extent_bytes();
  } catch (const std::exception& error) {
    scalars.assign(static_cast<size_t>(training ? int64_t{GrainScalars::kCount} : evaluation_.statistics_count()), 0.0);
    keep_error(error);
  }
  const bool votes =
      training && first_member_ && claim.grain == run_.begin && spec().checkpoint.every_minutes > 0 &&
      Clock::now() - last_checkpoint_ > std::chrono::duration<double>(60 * spec().checkpoint.every_minutes);
  if (votes) scalars[GrainScalars::kCheckpointVotes] = 1;
  GrainSum& sum = training ? gradient_sum_ : evaluation_sum_;
  const bool last = sum.finish(claim.grain, claim.buffer, std::move(scalars));
  {
    const std::lock_guard lock(mutex_);
    free_slots_.push_back(claim.slot);
  }
  if (last) finish_sum(sum, training ? Stage::kUpdate : Stage::kConclude);
}

void ModelRun::finish_sum(GrainSum& sum, Stage next) {
  const std::vector<GrainSum::Part> parts = sum.parts();
  comm::Word word{*setup_.stop, take_error()};
  summed_buffer_ = parts.front().buffer;
  if (alone()) {
    outcome_ = {parts.front().scalars, {word.stop_requested, std::move(word.error)}};
    return begin(next);
  }
  std::vector<at::Tensor> flats;
  std::vector<std::vector<double>> scalars;
  for (const GrainSum::Part& part : parts) {
    if (next == Stage::kUpdate) flats.push_back(sum.buffer(part.buffer));
    scalars.push_back(part.scalars);
  }
  begin(Stage::kWaiting);
  if (fault_due("sum lost", spec().name)) return;
  const auto began = Clock::now();
  post_sum(setup_.line, std::move(flats), std::move(scalars), std::move(word),
           fmt::format("sum of model {}, step {}", spec().name, progress_.step + 1),
           [this, next, began](SumOutcome outcome) {
             setup_.trace->record("exchange", spec().name, Trace::kExchange, began, Clock::now(), progress_.step,
                                  progress_.step);
             outcome_ = std::move(outcome);
             begin(next);
             setup_.notify();
           });
}

void ModelRun::update() {
  if (!outcome_.verdict.error.empty()) return end(ModelState::kFailed, outcome_.verdict.error);
  const at::Tensor& gradient = memory_.gradients[static_cast<size_t>(summed_buffer_)];
  const double denominator = outcome_.scalars[GrainScalars::kDenominator];
  const double loss = outcome_.scalars[GrainScalars::kLoss] / denominator;
  double norm = 0;
  guard([&] { norm = updater_.gradient_norm(gradient, denominator); });
  if (denominator == 0) {
    return end(
        ModelState::kFailed,
        fmt::format("step {}: expected a label that counts in the batch, found all with the loss's ignore_index or of "
                    "classes with weight 0; use larger batches, or take these rows out of the data",
                    progress_.step + 1));
  }
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    const char* what = std::isfinite(loss) ? "gradient" : "loss";
    return end(ModelState::kFailed, fmt::format("non-finite {} at step {}", what, progress_.step + 1));
  }
  const Rates now = calendar_.rates_after(progress_.step, progress_.plateau.lr);
  guard([&] {
    if (files_ && calendar_.log_due(progress_.step + 1)) {
      files_->log(step_line(progress_.step + 1, calendar_, loss, norm, now.lr));
    }
    fault_point("update", spec().name);
    updater_.apply(gradient, denominator, norm, progress_.step, now);
  });
  const StepBatches batches = calendar_.batches_after(progress_.step);
  for (int64_t b = batches.first_batch; b < batches.last_batch; ++b) {
    for (size_t g = 0; g < progress_.grain_rows.size(); ++g) {
      progress_.grain_rows[g] += source_.grain_rows(b, static_cast<int64_t>(g)).count();
    }
  }
  progress_.epoch_loss_sum += outcome_.scalars[GrainScalars::kLoss];
  progress_.epoch_denominator += denominator;
  steps_done_ = ++progress_.step;
  stopping_ = stopping_ || outcome_.verdict.stop_requested;
  checkpoint_voted_ = outcome_.scalars[GrainScalars::kCheckpointVotes] > 0;
  report_.publish(progress_, calendar_);
  calendar_.is_epoch_end(progress_.step) ? settle_epoch() : settle_step();
}

void ModelRun::settle_epoch() {
  if (evaluation_.has_rows() && calendar_.evaluation_due(progress_.step)) return share_then(AfterShare::kEvaluate);
  log_epoch(nullptr);
  settle_step();
}

void ModelRun::share_then(AfterShare next) {
  after_share_ = next;
  if (alone() || memory_.averaged_buffers.empty() || shared_step_ == progress_.step) return after_share();
  begin(Stage::kWaiting);
  post_share(setup_.line, memory_.grain_blocks.narrow(0, 0, spec().grains),
             fmt::format("running statistics of model {}, step {}", spec().name, progress_.step), [this] {
               begin(Stage::kShared);
               setup_.notify();
             });
}

void ModelRun::after_share() {
  if (shared_step_ != progress_.step) guard([&] { average_buffers(memory_, progress_.grain_rows); });
  shared_step_ = progress_.step;
  if (after_share_ == AfterShare::kWrite) return write();
  evaluation_sum_.reset();
  {
    const std::lock_guard lock(mutex_);
    next_grain_ = run_.begin;
  }
  begin(Stage::kEvaluate);
  if (slot_count_ > 1) setup_.notify();
}

void ModelRun::conclude() {
  if (!outcome_.verdict.error.empty()) return end(ModelState::kFailed, outcome_.verdict.error);
  stopping_ = stopping_ || outcome_.verdict.stop_requested;
  guard([&] {
    const nlohmann::json results = evaluation_.results(outcome_.scalars);
    if (observe(spec(), results, progress_) && files_) write_best();
    report_.publish_evaluation(results);
    log_epoch(results);
  });
  settle_step();
}

void ModelRun::write_best() {
  try {
    files_->write_weights("best", make_checkpoint(spec(), *setup_.graph, memory_, progress_).weights);
  } catch (const std::exception& error) {
    spdlog::warn("model {}: the best weights, of step {}, could not be written ({}); training goes on", spec().name,
                 progress_.step, error.what());
  }
}

void ModelRun::settle_step() {
  const bool due = checkpoint_voted_ || calendar_.checkpoint_due(progress_.step);
  if (due || is_done() || stopping_) return share_then(AfterShare::kWrite);
  begin_step();
}

void ModelRun::write() {
  const bool done = is_done();
  bool written = true;
  if (files_ && !has_error()) guard([&] { written = store(done); });
  if (has_error()) return done || stopping_ ? end(ModelState::kFailed, take_error()) : begin_step();
  if (done) return end(ModelState::kFinished);
  if (stopping_) return end(ModelState::kCheckpointed, written ? "" : "the last checkpoint could not be written");
  begin_step();
}

/// False when a checkpoint that is not the last could not be written.
bool ModelRun::store(bool last) {
  const auto began = Clock::now();
  fault_point("store", spec().name);
  const Checkpoint checkpoint = make_checkpoint(spec(), *setup_.graph, memory_, progress_);
  bool written = true;
  if (last) {
    files_->write_last(checkpoint);
  } else {
    written = files_->write_checkpoint(checkpoint);
  }
  last_checkpoint_ = Clock::now();
  setup_.trace->record("checkpoint", spec().name, Trace::kExchange + 1, began, Clock::now(), progress_.step,
                       progress_.step);
  return written;
}

void ModelRun::begin(Stage stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  stage_taken_ = false;
}

void ModelRun::begin_step() {
  gradient_sum_.reset();
  {
    const std::lock_guard lock(mutex_);
    next_grain_ = run_.begin;
  }
  begin(Stage::kTrain);
  if (slot_count_ > 1) setup_.notify();
}

void ModelRun::end(ModelState state, const std::string& reason) {
  const std::string text = as_utf8(reason);
  if (state == ModelState::kPaused && files_) spdlog::warn("model {} is paused: {}", spec().name, text);
  if (state == ModelState::kFailed && files_) {
    spdlog::error("model {} failed: {}", spec().name, text);
    files_->log({{"event", "failed"}, {"step", progress_.step}, {"reason", text}});
  }
  report_.publish(progress_, calendar_);
  report_.end(state, text);
  begin(Stage::kEnded);
  setup_.notify();
}

void ModelRun::log_epoch(const nlohmann::json& results) {
  progress_.last_train_loss = progress_.epoch_loss_sum / progress_.epoch_denominator;
  progress_.epoch_loss_sum = progress_.epoch_denominator = 0;
  report_.publish(progress_, calendar_);
  if (!files_) return;
  files_->log(epoch_line(progress_, calendar_, results));
  files_->log_timing({{"epoch", calendar_.epoch_ended(progress_.step)},
                      {"step", progress_.step},
                      {"seconds", std::chrono::duration<double>(Clock::now() - started_).count()}});
}

/// Of several errors the first one tells what happened.
void ModelRun::keep_error(const std::exception& error) {
  const std::lock_guard lock(mutex_);
  if (error_.empty()) error_ = error.what();
}

bool ModelRun::has_error() const {
  const std::lock_guard lock(mutex_);
  return !error_.empty();
}

std::string ModelRun::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, {});
}

double ModelRun::done_fraction() const {
  const auto total = static_cast<double>(calendar_.total_steps());
  return total == 0 ? 1.0 : static_cast<double>(steps_done_) / total;
}

bool ModelRun::ended() const {
  const std::lock_guard lock(mutex_);
  return stage_ == Stage::kEnded;
}

}  // namespace tutti::train
