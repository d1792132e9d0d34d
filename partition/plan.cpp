// A plan as JSON and as a table.
#include "partition/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::partition {
namespace {

std::string describe_runs(const comm::Team& team) {
  std::string text;
  for (const comm::GrainRun& run : team.runs) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", run.rank);
    if (team.runs.size() > 1) text += fmt::format(" [{}, {})", run.begin, run.end);
  }
  return text;
}

std::string describe_bytes(int64_t bytes) {
  constexpr double kMebi = 1 << 20;
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMebi);
}

nlohmann::json model_json(const ModelPlacement& model) {
  nlohmann::json runs = nlohmann::json::array();
  for (const comm::GrainRun& run : model.team.runs) {
    runs.push_back({{"rank", run.rank}, {"grains", {run.begin, run.end}}});
  }
  return {{"name", model.name},
          {"grain_count", model.team.grain_count},
          {"runs", std::move(runs)},
          {"seconds", model.seconds},
          {"exchange_seconds", model.exchange_seconds}};
}

}  // namespace

double Plan::gap() const { return lower_bound_seconds > 0 ? makespan_seconds / lower_bound_seconds : 1; }

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json json = {{"makespan_seconds", plan.makespan_seconds},
                         {"lower_bound_seconds", plan.lower_bound_seconds},
                         {"gap", plan.gap()},
                         {"models", nlohmann::json::array()},
                         {"ranks", nlohmann::json::array()},
                         {"notes", plan.notes}};
  for (const ModelPlacement& model : plan.models) json["models"].push_back(model_json(model));
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankLoad& rank = plan.ranks[r];
    json["ranks"].push_back({{"rank", r},
                             {"models", rank.model_count},
                             {"seconds", rank.seconds},
                             {"bytes", rank.bytes},
                             {"idle_share", rank.idle_share}});
  }
  return json;
}

std::string to_table(const Plan& plan) {
  size_t width = std::string_view("model").size();
  for (const ModelPlacement& model : plan.models) width = std::max(width, model.name.size());
  std::string table = fmt::format("{:<{}}  {:>10}  {:>10}  {}\n", "model", width, "time", "exchange", "ranks [grains)");
  for (const ModelPlacement& model : plan.models) {
    table += fmt::format("{:<{}}  {:>8.2f} s  {:>8.2f} s  {}\n", model.name, width, model.seconds,
                         model.exchange_seconds, describe_runs(model.team));
  }
  table += fmt::format("\n{:>4}  {:>6}  {:>10}  {:>14}  {:>5}\n", "rank", "models", "time", "memory", "idle");
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankLoad& rank = plan.ranks[r];
    table += fmt::format("{:>4}  {:>6}  {:>8.2f} s  {:>14}  {:>3.0f} %\n", r, rank.model_count, rank.seconds,
                         describe_bytes(rank.bytes), 100 * rank.idle_share);
  }
  table += fmt::format("\nestimated time {:.2f} s; no placement takes less than {:.2f} s (gap {:.2f})\n",
                       plan.makespan_seconds, plan.lower_bound_seconds, plan.gap());
  for (const std::string& note : plan.notes) table += note + "\n";
  return table;
}

}  // namespace tutti::partition
