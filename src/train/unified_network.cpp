#include "src/train/unified_network.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "src/train/crash_log.h"
#include "src/train/fault_text.h"
#include "src/train/parameter_groups.h"
#include "src/train/trial.h"

namespace tutti::train {

std::shared_ptr<const graph::Graph> trained_graph(const ModelSpec& spec) {
  const auto rules = resolve(*spec.graph, spec.parameter_rules, spec.optimizer);
  const bool as_it_is = std::equal(rules.begin(), rules.end(), spec.graph->parameters.begin(),
                                   [](const auto& rule, const auto& p) { return rule.trainable == p.trainable; });
  if (as_it_is) return spec.graph;
  auto graph = std::make_shared<graph::Graph>(*spec.graph);
  for (size_t p = 0; p < rules.size(); ++p) graph->parameters[p].trainable = rules[p].trainable;
  return graph;
}

std::shared_ptr<const program::Program> Programs::of(const ModelSpec& spec) {
  const auto graph = trained_graph(spec);
  program::CompileOptions options;
  options.precision = spec.double_precision ? at::kDouble : at::kFloat;
  if (spec.island) options.engine = program::CompileOptions::Engine::kIsland;
  const std::string key = fmt::format("{}|{}|{}", graph->signature(), spec.double_precision, spec.island);
  auto& program = by_signature_[key];
  if (!program) program = program::Program::compile(graph, options);
  return program;
}

namespace {

/// What a trial needed; none where its rows are at fault, which must end this model alone and not before it has met
/// them.
std::optional<int64_t> tried_region_bytes(const ModelSpec& spec,
                                          const std::shared_ptr<const program::Program>& program) {
  try {
    const Suspect suspect(spec.name);
    return run_trial(spec, program).region_bytes;
  } catch (const data::DataError&) {
    return std::nullopt;
  }
}

}  // namespace

UnifiedNetwork::UnifiedNetwork(const std::vector<Member>& members, Programs& programs,
                               const UnifiedNetworkOptions& options)
    : options_(options), programs_(programs) {
  for (const Member& member : members) admit(member);
  std::vector<ModelLayout> layouts;
  std::vector<const graph::Graph*> graphs;
  for (const Prepared& prepared : prepared_) {
    layouts.push_back(prepared.layout);
    graphs.push_back(prepared.graph.get());
    streams_.add(prepared.member->spec->data);
  }
  fused_ = std::make_unique<FusedBuffers>(layouts, graphs);
  memory_.fused_bytes = fused_->size_bytes();
  memory_.stream_bytes = streams_.most_bytes(options_.lane_count);
  memory_.region_bytes = predicted_bytes_;
  for (const auto& [key, bytes] : measured_) memory_.region_bytes = std::max(memory_.region_bytes, bytes);
}

void UnifiedNetwork::admit(const Member& member) {
  try {
    member.rest ? put_to_rest(member) : prepare(member);
  } catch (const std::exception& error) {
    faults_.push_back(fmt::format("model {}: {}", member.spec->name, fault_text(error)));
  }
}

void UnifiedNetwork::put_to_rest(const Member& member) {
  if (member.team.position_of(options_.rank) != 0) return;
  const ModelSpec& spec = *member.spec;
  const std::filesystem::path folder = options_.models_folder / spec.name;
  resting_.push_back({&spec, report_at_rest(folder, spec, member.resumed_step, *member.rest)});
  const ModelReport& report = resting_.back().report;
  if (report.state == ModelState::kPaused) spdlog::warn("model {} is paused: {}", spec.name, report.reason);
}

void UnifiedNetwork::prepare(const Member& member) {
  const ModelSpec& spec = *member.spec;
  Prepared prepared{&member, trained_graph(spec), programs_.of(spec), {}};
  const comm::GrainRun& run = member.team.runs.at(static_cast<size_t>(member.team.position_of(options_.rank)));
  prepared.layout = ModelRun::layout_for(spec, *prepared.graph, run, options_.lane_count);
  const std::string shape = trial_shape(spec, *prepared.program);
  if (!measured_.contains(shape)) {
    // A prediction says nothing of the gaps that a region's first fit leaves, and nothing of other models of this
    // shape.
    if (const auto tried = tried_region_bytes(spec, prepared.program)) {
      measured_[shape] = *tried;
    } else {
      predicted_bytes_ = std::max(predicted_bytes_, 2 * predicted_lane_bytes(spec, *prepared.program));
    }
  }
  if (member.team.runs.size() > 1) {
    memory_.exchange_bytes += sum_buffer_bytes(line_of(member), prepared.layout.precision,
                                               prepared.layout.element_count, GrainScalars::kCount);
  }
  prepared_.push_back(std::move(prepared));
}

TeamLine UnifiedNetwork::line_of(const Member& member) const {
  return {options_.communicator, options_.queue, member.team, member.tag, options_.reduction};
}

std::vector<ModelRun*> UnifiedNetwork::start_runs() {
  std::vector<ModelRun*> started;
  for (Prepared& prepared : prepared_) {
    const Member& member = *prepared.member;
    const std::filesystem::path folder = options_.models_folder / member.spec->name;
    try {
      std::optional<StoredCheckpoint> resumed;
      if (member.resumed_step) resumed = CheckpointStore(folder).open(*member.resumed_step);
      ModelMemory memory(prepared.layout, *prepared.graph, *fused_);
      ModelRunSetup setup{.training = {.spec = member.spec,
                                       .program = prepared.program,
                                       .graph = prepared.graph,
                                       .folder = folder,
                                       .resumed = resumed ? &*resumed : nullptr,
                                       .trace = options_.trace},
                          .line = line_of(member),
                          .rank = options_.rank,
                          .lane_count = options_.lane_count,
                          .stop = options_.stop,
                          .notify = options_.notify};
      runs_.push_back(std::make_unique<ModelRun>(std::move(setup), std::move(memory)));
      started.push_back(runs_.back().get());
    } catch (const std::exception& error) {
      faults_.push_back(fmt::format("model {}: {}", member.spec->name, fault_text(error)));
    }
  }
  return started;
}

std::vector<ReportedModel> UnifiedNetwork::reports() const {
  std::vector<ReportedModel> reports = resting_;
  for (const auto& run : runs_) {
    if (run->is_first_member()) reports.push_back({&run->spec(), run->report()});
  }
  return reports;
}

}  // namespace tutti::train
