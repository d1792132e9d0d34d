// A placement in the making: models are put on ranks one after the other.
#include "partition/placing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace tutti::partition {
namespace {

/// The seconds that a run of `grains` keeps a rank's lanes busy, added up over the lanes.
double busy_seconds(const ModelCost& model, int64_t grains, const RankCapacity& rank) {
  return (static_cast<double>(grains) * model.grain_seconds + model.update_seconds) / rank.speed;
}

}  // namespace

double span_seconds(const ModelCost& model, int64_t grains, const RankCapacity& rank) {
  const int64_t rounds = (grains + rank.lane_count - 1) / rank.lane_count;
  return (static_cast<double>(rounds) * model.grain_seconds + model.update_seconds) / rank.speed;
}

double seconds_of_exchanges(const ModelCost& model, const comm::Team& team, const Link& link) {
  return static_cast<double>(model.step_count) * exchange_seconds(link, team, model.memory.gradient_bytes);
}

std::vector<int64_t> subtree_runs(int64_t grain_count, int64_t member_count) {
  std::vector<int64_t> runs = {grain_count};
  while (std::ssize(runs) < member_count) {
    // The last of the longest: the runs stay in falling order, and each stays a complete subtree.
    const auto last_longest = std::ranges::upper_bound(runs, runs.front(), std::greater<>()) - 1;
    *last_longest /= 2;
    runs.insert(last_longest, *last_longest);
  }
  return runs;
}

double Placing::Occupied::finish(const RankCapacity& rank) const {
  return std::max(busy / static_cast<double>(rank.lane_count), longest);
}

Placing::Placing(const std::vector<ModelCost>& models, const Cluster& cluster)
    : models_(models), cluster_(cluster), occupied_(cluster.ranks.size()) {
  plan_.models.resize(models.size());
}

bool Placing::put(size_t index, int64_t member_count) {
  const ModelCost& model = models_[index];
  comm::Team team{model.grain_count, {}};
  int64_t begin = 0;
  for (const int64_t length : subtree_runs(model.grain_count, member_count)) {
    const std::optional<int> rank = best_rank(model, team, length);
    if (!rank) return false;
    team.runs.push_back({*rank, begin, begin + length});
    begin += length;
  }
  if (!fits(model, team)) return false;
  occupy(index, std::move(team));
  return true;
}

Plan Placing::finish() && {
  double makespan = 0;
  for (size_t r = 0; r < occupied_.size(); ++r) {
    const Occupied& rank = occupied_[r];
    const RankCapacity& capacity = cluster_.ranks[r];
    plan_.ranks.push_back({rank.finish(capacity), rank.bytes(capacity), 1, rank.model_count});
    makespan = std::max(makespan, plan_.ranks.back().seconds);
  }
  for (size_t r = 0; r < occupied_.size() && makespan > 0; ++r) {
    const double lane_seconds = makespan * static_cast<double>(cluster_.ranks[r].lane_count);
    plan_.ranks[r].idle_share = std::max(0.0, 1 - occupied_[r].busy / lane_seconds);
  }
  plan_.makespan_seconds = makespan;
  return std::move(plan_);
}

int64_t Placing::most_room_bytes() const {
  int64_t most = 0;
  for (size_t r = 0; r < occupied_.size(); ++r) {
    most = std::max(most, cluster_.ranks[r].memory_bytes - occupied_[r].bytes(cluster_.ranks[r]));
  }
  return most;
}

/// What a rank would hold with one more member.
Placing::Occupied Placing::with(size_t rank, const ModelCost& model, const comm::Team& team, size_t position) const {
  const RankCapacity& capacity = cluster_.ranks[rank];
  const int64_t grains = team.runs[position].end - team.runs[position].begin;
  Occupied after = occupied_[rank];
  after.busy += busy_seconds(model, grains, capacity);
  after.longest = std::max(after.longest, span_seconds(model, grains, capacity));
  after.model_bytes += member_bytes(model.memory, team, static_cast<int>(position), capacity.lane_count);
  after.region_bytes = std::max(after.region_bytes, model.memory.transient_bytes);
  after.streams.add(model.memory.streams);
  ++after.model_count;
  return after;
}

bool Placing::within_limit(size_t rank, const Occupied& after) const {
  const RankCapacity& capacity = cluster_.ranks[rank];
  return capacity.memory_bytes == 0 || after.bytes(capacity) <= capacity.memory_bytes;
}

/// The rank outside `team` on which the team's next run of `length` grains ends earliest, among those with room.
std::optional<int> Placing::best_rank(const ModelCost& model, const comm::Team& team, int64_t length) const {
  std::optional<int> best;
  double best_finish = std::numeric_limits<double>::infinity();
  for (size_t r = 0; r < cluster_.ranks.size(); ++r) {
    if (team.position_of(static_cast<int>(r)) >= 0) continue;
    const comm::Team alone{length, {{static_cast<int>(r), 0, length}}};
    const Occupied after = with(r, model, alone, 0);
    const double finish = after.finish(cluster_.ranks[r]);
    if (finish < best_finish && within_limit(r, after)) {
      best = static_cast<int>(r);
      best_finish = finish;
    }
  }
  return best;
}

/// The whole team, with the buffers of its exchange.
bool Placing::fits(const ModelCost& model, const comm::Team& team) const {
  for (size_t i = 0; i < team.runs.size(); ++i) {
    const auto rank = static_cast<size_t>(team.runs[i].rank);
    if (!within_limit(rank, with(rank, model, team, i))) return false;
  }
  return true;
}

void Placing::occupy(size_t index, comm::Team team) {
  const ModelCost& model = models_[index];
  ModelPlacement& placed = plan_.models[index];
  placed.name = model.name;
  placed.exchange_seconds = seconds_of_exchanges(model, team, cluster_.link);
  for (size_t i = 0; i < team.runs.size(); ++i) {
    const comm::GrainRun& run = team.runs[i];
    const auto rank = static_cast<size_t>(run.rank);
    occupied_[rank] = with(rank, model, team, i);
    const double span = span_seconds(model, run.end - run.begin, cluster_.ranks[rank]);
    placed.seconds = std::max(placed.seconds, span + placed.exchange_seconds);
  }
  for (const comm::GrainRun& run : team.runs) {
    Occupied& rank = occupied_[static_cast<size_t>(run.rank)];
    rank.longest = std::max(rank.longest, placed.seconds);
  }
  placed.team = std::move(team);
}

}  // namespace tutti::partition
