// Placement: which ranks train which models.
#include "partition/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "partition/placing.h"

namespace tutti::partition {
namespace {

int64_t most_members(const ModelCost& model, const Cluster& cluster) {
  return std::min<int64_t>(model.grain_count, std::ssize(cluster.ranks));
}

/// The least time of a model on a team of `member_count` ranks of the fastest kind.
double team_seconds(const ModelCost& model, const Cluster& cluster, const RankCapacity& fastest, int64_t member_count) {
  comm::Team team{model.grain_count, {}};
  int64_t begin = 0;
  for (const int64_t length : subtree_runs(model.grain_count, member_count)) {
    team.runs.push_back({static_cast<int>(team.runs.size()), begin, begin + length});
    begin += length;
  }
  return span_seconds(model, team.runs.front().end, fastest) + seconds_of_exchanges(model, team, cluster.link);
}

const RankCapacity& fastest_rank(const Cluster& cluster) {
  return *std::ranges::max_element(
      cluster.ranks, {}, [](const RankCapacity& rank) { return rank.speed * static_cast<double>(rank.lane_count); });
}

/// How many ranks a model gets when no model should take longer than `target_seconds`: the fewest that meet it, else
/// those with the least time.
int64_t members_for(const ModelCost& model, const Cluster& cluster, double target_seconds) {
  if (model.asked_ranks > 0) return std::min(model.asked_ranks, most_members(model, cluster));
  const RankCapacity& fastest = fastest_rank(cluster);
  int64_t best = 1;
  double best_seconds = team_seconds(model, cluster, fastest, 1);
  for (int64_t count = 2; count <= most_members(model, cluster) && best_seconds > target_seconds; ++count) {
    const double seconds = team_seconds(model, cluster, fastest, count);
    if (seconds < best_seconds) {
      best = count;
      best_seconds = seconds;
    }
  }
  return best;
}

/// Positions of the models, those with the greatest `key` first, else in the order given.
template <typename Key>
std::vector<size_t> by_falling(const std::vector<ModelCost>& models, const Key& key) {
  std::vector<size_t> order(models.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return key(models[i]); });
  return order;
}

std::string describe_missing_room(const ModelCost& model, const Placing& placing) {
  const comm::Team alone{model.grain_count, {{0, 0, model.grain_count}}};
  return fmt::format(
      "model {} needs {} bytes on one rank (parameters, moments and buffers {}, one gradient {}), {} for each lane, and "
      "{} for data that is streamed (`window`); the rank with the most room has {} left",
      model.name, member_bytes(model.memory, alone, 0, 1), model.memory.state_bytes, model.memory.gradient_bytes,
      model.memory.transient_bytes, model.memory.streams.most_bytes(1), placing.most_room_bytes());
}

/// The team sizes to try, in this order: the wished one, smaller ones, larger ones.
std::vector<int64_t> sizes_to_try(int64_t wished, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t count = wished; count >= 1; --count) sizes.push_back(count);
  for (int64_t count = wished + 1; count <= most; ++count) sizes.push_back(count);
  return sizes;
}

/// Places the models in this order, with these team sizes.
Plan place_in_order(const std::vector<ModelCost>& models, const Cluster& cluster, const std::vector<size_t>& order,
                    const std::vector<int64_t>& members) {
  Placing placing(models, cluster);
  std::vector<std::string> missing;
  for (const size_t i : order) {
    const std::vector<int64_t> sizes = sizes_to_try(members[i], most_members(models[i], cluster));
    const bool placed = std::ranges::any_of(sizes, [&](int64_t count) { return placing.put(i, count); });
    if (!placed) missing.push_back(describe_missing_room(models[i], placing));
  }
  if (!missing.empty()) {
    throw PlacementError(
        fmt::format("{}; raise `memory`, add ranks, or make the models or batches smaller", fmt::join(missing, "; ")));
  }
  return std::move(placing).finish();
}

/// By falling work; where memory is too short for that, by falling bytes.
Plan place_with(const std::vector<ModelCost>& models, const Cluster& cluster, const std::vector<int64_t>& members) {
  const auto work = [](const ModelCost& model) { return model.whole_seconds(); };
  const auto bytes = [](const ModelCost& model) { return model.memory.state_bytes + model.memory.gradient_bytes; };
  try {
    return place_in_order(models, cluster, by_falling(models, work), members);
  } catch (const PlacementError&) {
    return place_in_order(models, cluster, by_falling(models, bytes), members);
  }
}

std::vector<std::string> notes_of(const Plan& plan, const std::vector<ModelCost>& models) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < models.size(); ++i) {
    const auto got = std::ssize(plan.models[i].team.runs);
    if (models[i].asked_ranks > got) {
      notes.push_back(
          fmt::format("model {} asks for {} ranks and gets {}: it has {} grains, the job {} ranks, and memory "
                      "may set a limit",
                      models[i].name, models[i].asked_ranks, got, models[i].grain_count, plan.ranks.size()));
    }
  }
  std::vector<size_t> idle;
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].model_count == 0) idle.push_back(r);
  }
  if (!idle.empty()) {
    notes.push_back(
        fmt::format("more ranks than work: {} of {} ranks have none ({}); fewer ranks, or models with more "
                    "grains, would use them",
                    idle.size(), plan.ranks.size(), fmt::join(idle, ", ")));
  }
  return notes;
}

}  // namespace

double lower_bound_seconds(const std::vector<ModelCost>& models, const Cluster& cluster) {
  double capacity = 0;
  double best_speed = 0;
  int64_t lane_count = 0;
  for (const RankCapacity& rank : cluster.ranks) {
    capacity += rank.speed * static_cast<double>(rank.lane_count);
    best_speed = std::max(best_speed, rank.speed);
    lane_count += rank.lane_count;
  }
  double work = 0;
  double longest = 0;
  for (const ModelCost& model : models) {
    work += model.whole_seconds();
    longest = std::max(longest, span_seconds(model, model.grain_count, {best_speed, lane_count, 0}));
  }
  return std::max(work / capacity, longest);
}

Plan place(const std::vector<ModelCost>& models, const Cluster& cluster) {
  if (cluster.ranks.empty()) throw std::invalid_argument("placement: expected at least one rank, found none");
  // No model longer than a multiple of the lower bound: the larger the multiple, the fewer models are spread. The plan
  // with the least makespan holds; among equals the one with fewer teams.
  constexpr std::array kMultiples = {1e300, 2.0, 1.5, 1.2, 1.0};
  const double bound = lower_bound_seconds(models, cluster);
  std::optional<Plan> best;
  std::optional<PlacementError> failure;
  std::optional<std::vector<int64_t>> tried;
  for (const double multiple : kMultiples) {
    std::vector<int64_t> members;
    members.reserve(models.size());
    for (const ModelCost& model : models) members.push_back(members_for(model, cluster, multiple * bound));
    if (members == tried) continue;
    tried = members;
    try {
      Plan plan = place_with(models, cluster, members);
      if (!best || plan.makespan_seconds < best->makespan_seconds) best = std::move(plan);
    } catch (const PlacementError& error) {
      failure = error;
    }
  }
  if (!best) throw *failure;
  best->lower_bound_seconds = bound;
  best->notes = notes_of(*best, models);
  return std::move(*best);
}

}  // namespace tutti::partition
