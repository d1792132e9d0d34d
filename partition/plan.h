// A plan: who trains what where, with predicted time and memory, and how it is shown.
#ifndef TUTTI_PARTITION_PLAN_H
#define TUTTI_PARTITION_PLAN_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/team.h"
#include "partition/cost_model.h"

namespace tutti::partition {

/// What one rank offers.
struct RankCapacity {
  double speed = 1;  ///< of a lane, relative to Machine
  int64_t lane_count = 1;
  int64_t memory_bytes = 0;  ///< 0 = no limit
};

struct Cluster {
  std::vector<RankCapacity> ranks;
  Link link;
};

/// Where one model trains.
struct ModelPlacement {
  std::string name;
  comm::Team team;
  double seconds = 0;           ///< least time it takes on its team when nothing else runs there
  double exchange_seconds = 0;  ///< of which sums over the team
};

/// What one rank has to do.
struct RankLoad {
  double seconds = 0;     ///< until its last model ends
  int64_t bytes = 0;      ///< of its models, and of the lanes' regions
  double idle_share = 1;  ///< of the makespan
  int64_t model_count = 0;
};

/// Who trains what where: a whole value.
struct Plan {
  std::vector<ModelPlacement> models;  ///< in the order of the costs
  std::vector<RankLoad> ranks;
  double makespan_seconds = 0;
  double lower_bound_seconds = 0;  ///< no placement can be faster, by the same cost model
  std::vector<std::string> notes;  ///< what a user should know: ranks without work, wishes not met

  /// makespan / lower bound; 1 for an empty plan.
  double gap() const;
};

/// {"makespan_seconds": .., "lower_bound_seconds": .., "gap": .., "models": [{"name", "runs": [{"rank", "grains":
/// [begin, end]}], ..}], "ranks": [{"rank", "seconds", "bytes", "idle_share", "models"}], "notes": [..]}
nlohmann::json to_json(const Plan& plan);

/// The plan as lines for a terminal: a table of models, a table of ranks, the makespan with its bound, the notes.
std::string to_table(const Plan& plan);

}  // namespace tutti::partition

#endif
