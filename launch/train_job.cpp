#include "launch/train_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "comm/agreement.h"
#include "comm/tags.h"
#include "data/fnv_hash.h"
#include "launch/command.h"
#include "launch/counted.h"
#include "launch/cpu_level.h"
#include "launch/memory_limit.h"
#include "launch/model_report.h"
#include "launch/open_files.h"
#include "launch/results.h"
#include "launch/run_summary.h"
#include "launch/show.h"
#include "launch/trace_file.h"
#include "launch/version.h"
#include "partition/cost_model.h"
#include "src/program/lane_allocator.h"

namespace tutti::launch {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kReportTag = comm::kFirstFreeTag;
constexpr int kFirstModelTag = comm::kFirstFreeTag + 8;
constexpr const char* kCrashLog = "crashes.txt";  // in the output folder
constexpr int64_t kCrashesToPause = 2;

std::string short_hash(const std::string& text) { return fmt::format("{:016x}", data::fnv_hash(text)); }

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double idle_share(const partition::Plan& plan) {
  double sum = 0;
  for (const partition::RankLoad& rank : plan.ranks) sum += rank.idle_share;
  return plan.ranks.empty() ? 0 : sum / static_cast<double>(plan.ranks.size());
}

}  // namespace

TrainJob::TrainJob(const comm::MpiSession& session, comm::MpiCommunicator& world, RankWatch& watch,
                   train::CrashLog& crash_log, OutputThread& output, TrainOptions options)
    : session_(session),
      world_(world),
      watch_(watch),
      crash_log_(crash_log),
      shown_(output),
      options_(std::move(options)),
      started_(Clock::now()) {}

TrainJob::~TrainJob() = default;

int TrainJob::run() {
  agree_on_machine();
  read_job();
  agree_on_job();
  open_output();
  choose_checkpoints();
  place();
  build();
  train();
  return conclude();
}

void TrainJob::agree_on_machine() {
  const CpuShare share = own_cpu_share();
  const std::string own = nlohmann::json({static_cast<int>(cpu_level()), to_text(share)}).dump();
  CpuLevel least = CpuLevel::kAvx512;
  for (const std::string& text : comm::all_gather(world_, own, watch_.deadline("comparing the machines"))) {
    const auto json = nlohmann::json::parse(text);
    least = std::min(least, static_cast<CpuLevel>(json[0].get<int>()));
    shares_.push_back(cpu_share_from(json[1].get<std::string>()));
  }
  pin_cpu_level(least);
  program::install_lane_allocator();
}

void TrainJob::read_job() {
  watch_.together("reading the job file", [&] { job_ = load_job(options_.job_file, options_.job); });
  if (options_.trace) job_.run.trace = *options_.trace;
  watch_.set_deadline(std::chrono::milliseconds(static_cast<int64_t>(job_.run.deadline_seconds * 1000)));
  lanes_choice_ = choose_lanes(shares_, world_.rank(), job_.run.lanes);
  if (is_root()) {
    for (const std::string& warning : lanes_choice_.warnings) spdlog::warn("{}", warning);
  }
}

void TrainJob::agree_on_job() {
  std::vector<std::string> shapes, fingerprints;
  for (const train::ModelSpec& model : job_.models) {
    shapes.push_back(model.name + "=" + short_hash(model.graph->signature()));
    for (const auto& set : {model.data.train, model.data.validation, model.data.test}) {
      if (set) fingerprints.push_back(fmt::format("{}={:016x}", model.data.name, set->fingerprint()));
    }
  }
  const std::vector<comm::LabelledValue> values = {
      {"program version", program_version()},
      {"number of models", std::to_string(job_.models.size())},
      {"models and their shapes", short_hash(fmt::format("{}", fmt::join(shapes, ",")))},
      {"contents of the data sets", short_hash(fmt::format("{}", fmt::join(fingerprints, ",")))},
      {"hash of the job", fmt::format("{:016x}", job_.hash)}};
  try {
    comm::agree(world_, values, watch_.deadline("comparing the job"));
  } catch (const comm::Disagreement& difference) {
    throw UsageError(difference.what());
  }
}

void TrainJob::open_output() {
  watch_.together("opening the output folder", [&] {
    if (!is_root()) return;
    check_trace_file(job_);  // before anything is made
    output_.emplace(job_);
    check_trace_file(job_);  // now that the folder's own files are there
    if (!job_.run.trace.empty()) replace_file(job_.run.trace, "[]\n");
  });
  watch_.also([this] {
    if (output_) output_->check_lock();
    if (reports_) reports_->poll();
  });
  trace_.emplace(world_.rank(), !job_.run.trace.empty());
}

void TrainJob::choose_checkpoints() {
  nlohmann::json steps = nlohmann::json::object(), crashes = nlohmann::json::object();
  nlohmann::json finished = nlohmann::json::array();
  watch_.together("choosing the checkpoints", [&] {
    if (!is_root() || !job_.run.resume) return;
    for (const train::ModelSpec& model : job_.models) {
      const std::filesystem::path folder = output_->models() / model.name;
      const auto step = train::CheckpointStore(folder).newest_good();
      if (!step) continue;
      steps[model.name] = *step;
      if (train::is_finished(folder, model, *step)) finished.push_back(model.name);
    }
    crashes = train::CrashLog::counts(output_->path() / kCrashLog);
  });
  const std::string run = fmt::format("{:x}-{}", std::chrono::system_clock::now().time_since_epoch().count(), getpid());
  const auto chosen = nlohmann::json::parse(comm::broadcast(
      world_, nlohmann::json{steps, crashes, run, finished}.dump(), watch_.deadline("choosing the checkpoints")));
  chosen.at(0).get_to(resume_steps_);
  chosen.at(1).get_to(crash_counts_);
  chosen.at(3).get_to(finished_);
  crash_log_.open(job_.run.out / kCrashLog, chosen.at(2).get<std::string>());
}

void TrainJob::place() {
  memory_bytes_ = job_.run.memory_bytes > 0 ? job_.run.memory_bytes : automatic_memory_bytes(session_.local_size());
  const std::string own = nlohmann::json({lanes_choice_.lane_count, memory_bytes_}).dump();
  partition::Cluster cluster;
  for (const std::string& text : comm::all_gather(world_, own, watch_.deadline("comparing the ranks' capacities"))) {
    const auto json = nlohmann::json::parse(text);
    cluster.ranks.push_back({1.0, json[0].get<int64_t>(), json[1].get<int64_t>()});
  }
  watch_.together("placing the models", [&] {
    std::vector<partition::ModelCost> costs;
    for (size_t i = 0; i < job_.models.size(); ++i) {
      if (rest_of(i)) {
        costs.push_back({.name = job_.models[i].name});  // no time, no bytes
        continue;
      }
      const partition::ModelCost cost = partition::predict_cost(job_.models[i], *programs_.of(job_.models[i]));
      costs.push_back(partition::with_steps_left(cost, cost.step_count - resumed_step(i).value_or(0)));
    }
    plan_ = partition::place(costs, cluster);
  });
  if (is_root()) print_headline();
}

void TrainJob::build() {
  const int64_t last_tag = kFirstModelTag + 2 * static_cast<int64_t>(job_.models.size());
  if (last_tag > world_.greatest_tag()) {
    throw UsageError(
        fmt::format("models: expected at most {} in one job with this MPI library, found {}; split the job",
                    (world_.greatest_tag() - kFirstModelTag) / 2, job_.models.size()));
  }
  for (size_t i = 0; i < job_.models.size(); ++i) {
    const comm::Team& team = plan_.models[i].team;
    if (team.position_of(world_.rank()) < 0) continue;
    members_.push_back({&job_.models[i], team, kFirstModelTag + 2 * static_cast<int>(i), resumed_step(i), rest_of(i)});
  }
  const auto notify = [this] {
    if (lanes_) lanes_->notify();
  };
  watch_.together("building the models", [&] {
    check_open_files();
    network_.emplace(members_, programs_,
                     train::UnifiedNetworkOptions{world_.rank(), &world_, &queue_, job_.run.out / "models",
                                                  lanes_choice_.lane_count, reduction(), &stop_, notify, &*trace_});
    check_memory();
    warm_bytes_ = anonymous_bytes() - network_->streams().held_bytes();  // trial steps have begun to stream
    sampler_.emplace(job_.run.measure_memory ? std::chrono::milliseconds(5) : std::chrono::milliseconds(500));
    lanes_.emplace(train::Lanes::Options{static_cast<int>(lanes_choice_.lane_count), network_->memory().region_bytes,
                                         std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::duration<double, std::milli>(job_.run.visit_milliseconds)),
                                         [this] { queue_.wake(); }});
    runs_ = network_->start_runs();
    if (!network_->faults().empty()) throw UsageError(fmt::format("{}", fmt::join(network_->faults(), "\n")));
  });
}

/// Each model that is trained keeps its two logs open, on the first member of its team.
void TrainJob::check_open_files() const {
  constexpr int64_t kOthers = 256;  // libraries, messages, shards
  const int64_t models = std::ranges::count_if(members_, [&](const train::Member& member) {
    return !member.rest && member.team.position_of(world_.rank()) == 0;
  });
  const int64_t needed = kOthers + 2 * models;
  const int64_t limit = raise_open_file_limit();
  if (needed <= limit) return;
  throw UsageError(
      fmt::format("models: expected at most {} on one rank, which may have {} files open, found {}; raise the limit "
                  "(`ulimit -n`, or ask the administrator for a higher hard limit) to {}, or add ranks",
                  std::max<int64_t>((limit - kOthers) / 2, 0), limit, models, needed));
}

std::optional<int64_t> TrainJob::resumed_step(size_t model) const {
  const auto step = resume_steps_.find(job_.models[model].name);
  return step == resume_steps_.end() ? std::nullopt : std::optional(step->second);
}

/// Why a model is not trained; none when it is.
std::optional<train::Rest> TrainJob::rest_of(size_t model) const {
  const std::string& name = job_.models[model].name;
  if (finished_.contains(name)) return train::Rest{train::ModelState::kFinished, {}};
  const auto crashes = crash_counts_.find(name);
  if (crashes == crash_counts_.end() || crashes->second < kCrashesToPause) return std::nullopt;
  return train::Rest{
      train::ModelState::kPaused,
      fmt::format("the process crashed {} times while it worked for this model; the others train on without it. Take "
                  "its lines out of {} to try again with --resume",
                  crashes->second, (job_.run.out / kCrashLog).string())};
}

/// The placement went by predictions; here trial steps have measured what the lanes need.
void TrainJob::check_memory() const {
  const train::MemoryReport memory = network_->memory();
  const int64_t planned = memory.planned_bytes(lanes_choice_.lane_count);
  if (planned <= memory_bytes_) return;
  throw UsageError(fmt::format(
      "run.memory: expected at most {} bytes on one rank, found that its models need {} ({} for "
      "parameters, gradients and moments, {} for each of {} lanes, {} for sums over ranks, {} for data that "
      "is streamed); raise `memory`, add ranks, or use smaller batches, more grains, fewer lanes or a "
      "smaller `window`",
      memory_bytes_, planned, memory.fused_bytes, memory.region_bytes, lanes_choice_.lane_count, memory.exchange_bytes,
      memory.stream_bytes));
}

void TrainJob::train() {
  trained_from_ = Clock::now();
  watch_.watch_lanes([this] { return lane_progress(); });
  if (is_root()) {
    std::vector<std::string> names;
    for (const train::ModelSpec& model : job_.models) names.push_back(model.name);
    table_.emplace(std::move(names), std::chrono::duration<double>(job_.run.progress_seconds), shown_);
  }
  reports_.emplace(
      world_, kReportTag, std::chrono::duration<double>(job_.run.progress_seconds), [this] { return own_reports(); },
      [this](const nlohmann::json& reports) {
        table_->update(reports);
        table_->refresh();
      });
  lanes_->start(runs_);
  while (!lanes_->done()) {
    const bool moved = queue_.progress_all();
    watch_.poll();
    if (watch_.stop_requested()) stop_ = true;
    if (!moved) queue_.sleep();
  }
}

comm::LaneProgress TrainJob::lane_progress() const {
  comm::LaneProgress progress;
  for (const auto& lane : lanes_->lanes()) {
    progress.progress_count += lane->signs_of_life();
    const std::string* visited = lane->visited;
    if (visited == nullptr) continue;
    progress.has_work = true;
    progress.description += (progress.description.empty() ? "training " : ", ") + *visited;
  }
  progress.waits = !progress.has_work && !lanes_->done();
  if (progress.waits) progress.description = "waiting for " + awaited();
  return progress;
}

std::string TrainJob::awaited() const {
  if (queue_.in_flight().empty()) return "work";
  const comm::Operation& oldest = *queue_.in_flight().front();
  const std::vector<int> ranks = oldest.waiting_for();
  if (ranks.empty()) return "its own messages to leave, in the " + oldest.description();
  return fmt::format("rank {} in the {}", fmt::join(ranks, " and rank "), oldest.description());
}

void TrainJob::print_headline() const {
  std::string text =
      fmt::format("{} on {} of {}: predicted {:.1f} s of work, idle share {:.0f} %\n",
                  counted(job_.models.size(), "model"), counted(world_.size(), "rank"),
                  counted(lanes_choice_.lane_count, "lane"), plan_.makespan_seconds, 100 * idle_share(plan_));
  for (const std::string& note : plan_.notes) text += note + '\n';
  for (const std::string& warning : job_.warnings) text += "warning: " + warning + '\n';
  if (reduction() == train::Reduction::kFast) {
    text += "reduction: fast: results agree with other placements within rounding, not bit for bit\n";
  }
  if (job_.run.resume) {
    int64_t going_on = 0;
    for (size_t i = 0; i < job_.models.size(); ++i) going_on += resumed_step(i) && !rest_of(i) ? 1 : 0;
    text += fmt::format("{} of {} models go on from a checkpoint, {} have finished\n", going_on, job_.models.size(),
                        finished_.size());
  }
  shown_.show(text);
}

train::Reduction TrainJob::reduction() const {
  return job_.run.reduction == RunSpec::Reduction::kFast ? train::Reduction::kFast : train::Reduction::kExact;
}

nlohmann::json TrainJob::own_reports() const {
  nlohmann::json reports = nlohmann::json::array();
  for (const auto& [spec, report] : network_->reports()) reports.push_back(report_of(*spec, report));
  return reports;
}

nlohmann::json TrainJob::own_figures() const {
  const double training = seconds_between(trained_from_, Clock::now());
  int64_t busy_ns = 0, region_bytes = 0;
  for (const auto& lane : lanes_->lanes()) {
    busy_ns += lane->busy_ns;
    region_bytes += lane->region_extent;
  }
  const double computing = static_cast<double>(busy_ns) * 1e-9;
  const double exchanging = std::chrono::duration<double>(queue_.time_in_flight()).count();
  const double available = training * static_cast<double>(lanes_->lanes().size());
  const int64_t tracked =
      network_->memory().fused_bytes + region_bytes + queue_.peak_buffer_bytes() + network_->streams().peak_bytes();
  return {{"rank", world_.rank()},
          {"host", watch_.roster().processes().at(static_cast<size_t>(world_.rank())).host},
          {"process", getpid()},
          {"lanes", lanes_->lanes().size()},
          {"seconds",
           {{"start_up", seconds_between(started_, trained_from_)},
            {"training", training},
            {"computing", computing},
            {"exchanging", exchanging},
            {"waiting", std::max(0.0, available - computing)}}},
          {"data_bytes_read", bytes_read(job_)},
          {"sent_bytes", world_.sent_bytes()},
          {"sent_messages", world_.sent_messages()},
          {"memory_bytes",
           {{"warm_baseline", warm_bytes_},
            {"predicted", plan_.ranks.at(static_cast<size_t>(world_.rank())).bytes},
            {"tracked", tracked},
            {"planned", network_->memory().planned_bytes(lanes_choice_.lane_count)},
            {"measured", std::max<int64_t>(0, sampler_->peak_bytes() - warm_bytes_)}}}};
}

int TrainJob::conclude() {
  sampler_->sample();
  const nlohmann::json own = {{"reports", own_reports()}, {"figures", own_figures()}};
  nlohmann::json reports = nlohmann::json::array(), ranks = nlohmann::json::array();
  for (const std::string& text : comm::gather(world_, own.dump(), watch_.deadline("collecting the results"))) {
    const auto json = nlohmann::json::parse(text);
    for (const auto& report : json.at("reports")) reports.push_back(report);
    ranks.push_back(json.at("figures"));
  }
  bool written = true;
  watch_.together("writing the summary", [&] {
    if (is_root()) written = write_summary(reports, ranks);
  });
  int code = kDone;
  if (is_root()) {
    table_->update(reports);
    table_->finish();
    code = exit_code_of(reports);
    if (!written && code == kDone) code = kInternal;
    std::vector<ModelResult> results = results_of(reports);
    sort_best_first(results, deciding_metric(results, ""));
    shown_.show(fmt::format("\n{}", model_table(results)));
  }
  write_trace();
  code = std::stoi(comm::broadcast(world_, std::to_string(code), watch_.deadline("ending together")));
  while (!reports_->finish_sending()) watch_.poll();
  return code;
}

bool TrainJob::write_summary(const nlohmann::json& reports, const nlohmann::json& ranks) {
  const nlohmann::json summary = run_summary({job_, plan_, reports, ranks, seconds_between(started_, Clock::now())});
  try {
    replace_file(output_->path() / "summary.json", summary.dump(1) + "\n");
    return true;
  } catch (const std::exception& error) {
    spdlog::error(
        "the summary could not be written: {}; the models' own folders are as complete as the table below says",
        error.what());
    return false;
  }
}

void TrainJob::write_trace() {
  if (!trace_->enabled()) return;
  std::string all;
  for (const std::string& events : comm::gather(world_, trace_->events(), watch_.deadline("collecting the trace"))) {
    if (!events.empty()) all += (all.empty() ? "" : ",\n") + events;
  }
  watch_.together("writing the trace", [&] {
    if (!is_root()) return;
    try {
      replace_file(job_.run.trace, "[\n" + all + "\n]\n");
    } catch (const std::exception& error) {
      spdlog::error("the trace could not be written: {}", error.what());
    }
  });
}

}  // namespace tutti::launch
