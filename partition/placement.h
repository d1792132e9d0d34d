// Placement: which ranks train which models.
#ifndef TUTTI_PARTITION_PLACEMENT_H
#define TUTTI_PARTITION_PLACEMENT_H

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "partition/cost_model.h"
#include "partition/plan.h"

namespace tutti::partition {

/// What cannot fit. The message names every such model with its bytes, and the rank with the most room.
class PlacementError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Places models: those with most work first, each on the rank where it ends earliest and fits (longest processing
/// time first; Graham 1969: at most 4/3 - 1/(3R) times the least makespan on R equal ranks, for whole models). A model
/// whose `ranks` asks for it is spread over that many ranks; so is one that is too big for one rank's fair share, if
/// that shortens the predicted makespan, or one that fits no other way. Members of a team own whole subtrees of the
/// grains. A pure function: every rank that calls it with equal arguments gets the same plan. Any number of ranks.
/// Throws PlacementError when the memory limits leave no place for a model.
Plan place(const std::vector<ModelCost>& models, const Cluster& cluster);

/// max(all work over all lanes, the longest model over all lanes).
double lower_bound_seconds(const std::vector<ModelCost>& models, const Cluster& cluster);

}  // namespace tutti::partition

#endif
