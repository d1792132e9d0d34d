#include "launch/outlook.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "launch/command.h"
#include "launch/text_table.h"
#include "partition/placement.h"
#include "src/train/trial.h"
#include "src/train/unified_network.h"

namespace tutti::launch {

namespace {

// A line of metrics.jsonl, with timing.jsonl's beside it, and each metric in it.
constexpr int64_t kLineBytes = 200;
constexpr int64_t kMetricBytes = 30;

/// Models with their programs and costs.
struct Costing {
  std::vector<std::shared_ptr<const program::Program>> programs;
  std::vector<partition::ModelCost> costs;
};

Costing cost_models(const Job& job, const partition::Machine& machine, Costs source) {
  train::Programs programs;
  std::map<std::string, train::TrialResult> trials;
  Costing costing;
  for (const train::ModelSpec& spec : job.models) {
    const auto program = programs.of(spec);
    partition::ModelCost cost = partition::predict_cost(spec, *program, machine);
    if (source == Costs::kMeasured) {
      const std::string shape = train::trial_shape(spec, *program);
      if (!trials.contains(shape)) trials[shape] = train::run_trial(spec, program);
      cost = partition::with_trial(std::move(cost), spec, trials[shape]);
    }
    costing.programs.push_back(program);
    costing.costs.push_back(std::move(cost));
  }
  return costing;
}

int64_t log_bytes(const train::ModelSpec& spec, int64_t step_count) {
  const int64_t parts = (spec.data.validation ? 1 : 0) + (spec.data.test ? 1 : 0);
  const auto metrics = static_cast<int64_t>(spec.metrics.size()) + 1;  // and the loss
  const int64_t step_lines = spec.log_every > 0 ? step_count / spec.log_every : 0;
  return spec.epochs * (kLineBytes + parts * metrics * kMetricBytes) + step_lines * kLineBytes;
}

int64_t disk_bytes(const train::ModelSpec& spec, const program::Program& program, int64_t step_count) {
  const graph::Graph& graph = program.graph();
  const int64_t parameters = graph.parameter_count() * static_cast<int64_t>(c10::elementSize(program.precision()));
  int64_t buffers = 0;
  for (const graph::Buffer& buffer : graph.buffers) buffers += static_cast<int64_t>(buffer.initial.nbytes());
  const int64_t weights = parameters + buffers;
  const int64_t state = spec.optimizer.moment_count() * parameters + spec.grains * buffers;
  const int64_t checkpoints = spec.checkpoint.keep + 1;
  const int64_t exports = spec.checkpoint.best.empty() ? 1 : 2;
  return checkpoints * (weights + state) + exports * weights + log_bytes(spec, step_count);
}

ModelOutlook outlook_of(const train::ModelSpec& spec, const program::Program& program, const partition::ModelCost& cost,
                        const comm::Team& team, const partition::Cluster& cluster) {
  ModelOutlook model;
  model.row_count = cost.row_count;
  model.epoch_count = spec.epochs;
  model.step_count = cost.step_count;
  model.parameter_count = program.graph().parameter_count();
  for (size_t position = 0; position < team.runs.size(); ++position) {
    const int64_t lanes = cluster.ranks[static_cast<size_t>(team.runs[position].rank)].lane_count;
    model.member_bytes.push_back(partition::member_bytes(cost.memory, team, static_cast<int>(position), lanes));
  }
  model.region_bytes = cost.memory.transient_bytes;
  model.exchanged_bytes = partition::exchange_bytes(team, cost.memory.gradient_bytes);
  model.disk_bytes = disk_bytes(spec, program, cost.step_count);
  model.islands = program.islands();
  return model;
}

/// Throws UsageError, with the numbers, where the models do not fit.
partition::Plan place_models(const std::vector<partition::ModelCost>& costs, const partition::Cluster& cluster) {
  try {
    return partition::place(costs, cluster);
  } catch (const partition::PlacementError& error) {
    throw UsageError(error.what());
  }
}

std::string in_mebibytes(int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 20)); }

/// "island model-a, model-b: aten::linear, aten::relu" for each set of operators.
std::string islands_text(const Outlook& outlook) {
  std::map<std::vector<std::string>, std::vector<std::string>> models;
  for (size_t i = 0; i < outlook.models.size(); ++i) {
    if (!outlook.models[i].islands.empty()) models[outlook.models[i].islands].push_back(outlook.plan.models[i].name);
  }
  if (models.empty()) return "no autograd islands\n";
  std::string text =
      "autograd islands (right, but slower than instructions; memory is a rough guess without --measure)\n";
  for (const auto& [operators, names] : models) {
    text += fmt::format("  {}: {}\n", fmt::join(names, ", "), fmt::join(operators, ", "));
  }
  return text;
}

}  // namespace

int64_t Outlook::disk_bytes() const {
  int64_t bytes = 0;
  for (const ModelOutlook& model : models) bytes += model.disk_bytes;
  return bytes;
}

Outlook look_ahead(const Job& job, const partition::Cluster& cluster, const partition::Machine& machine, Costs costs) {
  Costing costing = cost_models(job, machine, Costs::kPredicted);
  Outlook outlook;
  outlook.costs = costs;
  outlook.plan = place_models(costing.costs, cluster);
  if (costs == Costs::kMeasured) {  // what is predicted not to fit has been refused, and is not tried
    costing = cost_models(job, machine, Costs::kMeasured);
    outlook.plan = place_models(costing.costs, cluster);
  }
  for (size_t i = 0; i < job.models.size(); ++i) {
    outlook.models.push_back(
        outlook_of(job.models[i], *costing.programs[i], costing.costs[i], outlook.plan.models[i].team, cluster));
  }
  return outlook;
}

nlohmann::json to_json(const Outlook& outlook) {
  nlohmann::json json = partition::to_json(outlook.plan);
  json["estimates"] = outlook.costs == Costs::kMeasured ? "trial steps" : "cost model";
  json["disk_bytes"] = outlook.disk_bytes();
  for (size_t i = 0; i < outlook.models.size(); ++i) {
    const ModelOutlook& model = outlook.models[i];
    json["models"][i].update({{"rows", model.row_count},
                              {"epochs", model.epoch_count},
                              {"steps", model.step_count},
                              {"parameters", model.parameter_count},
                              {"member_bytes", model.member_bytes},
                              {"region_bytes", model.region_bytes},
                              {"exchanged_bytes_per_step", model.exchanged_bytes},
                              {"disk_bytes", model.disk_bytes},
                              {"islands", model.islands}});
  }
  return json;
}

std::string to_table(const Outlook& outlook) {
  std::vector<Row> rows = {
      {"model", "rows", "epochs", "steps", "parameters", "MiB/lane", "MiB sent/step", "MiB on disk", "MiB/member"}};
  for (size_t i = 0; i < outlook.models.size(); ++i) {
    const ModelOutlook& model = outlook.models[i];
    std::vector<std::string> members;
    for (const int64_t bytes : model.member_bytes) members.push_back(in_mebibytes(bytes));
    rows.push_back({outlook.plan.models[i].name, fmt::format("{}", model.row_count),
                    fmt::format("{}", model.epoch_count), fmt::format("{}", model.step_count),
                    fmt::format("{}", model.parameter_count), in_mebibytes(model.region_bytes),
                    in_mebibytes(model.exchanged_bytes), in_mebibytes(model.disk_bytes),
                    fmt::format("{}", fmt::join(members, ", "))});
  }
  const char* source = outlook.costs == Costs::kMeasured ? "trial steps" : "operation and byte counts";
  return fmt::format("All times and bytes are estimates, from {}.\n\n", source) + table_of(rows) + "\n" +
         partition::to_table(outlook.plan) +
         fmt::format("at most {} MiB on disk\n", in_mebibytes(outlook.disk_bytes())) + islands_text(outlook);
}

}  // namespace tutti::launch
