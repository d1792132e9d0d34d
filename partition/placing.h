// A placement in the making: models are put on ranks one after the other.
#ifndef TUTTI_PARTITION_PLACING_H
#define TUTTI_PARTITION_PLACING_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partition/cost_model.h"
#include "partition/plan.h"

namespace tutti::partition {

/// The least seconds a run of `grains` takes on a rank, all its lanes at work, without exchange.
double span_seconds(const ModelCost& model, int64_t grains, const RankCapacity& rank);

/// The seconds that a team's sums take over the whole training.
double seconds_of_exchanges(const ModelCost& model, const comm::Team& team, const Link& link);

/// The runs of `member_count` members, in grain order, the longest first: each a complete subtree, as even as that
/// allows (8 grains over 3: 4, 2, 2). Requires 1 <= member_count <= grain_count, a power of two.
std::vector<int64_t> subtree_runs(int64_t grain_count, int64_t member_count);

/// Keeps what every rank holds, and puts each next model where it ends earliest.
class Placing {
 public:
  /// Both must outlive this.
  Placing(const std::vector<ModelCost>& models, const Cluster& cluster);

  /// Puts model number `index` on `member_count` ranks. False, and nothing changed, when it does not fit.
  bool put(size_t index, int64_t member_count);

  /// The plan with every model put, without bound and notes.
  Plan finish() &&;

  /// The most bytes that a rank with a limit still has.
  int64_t most_room_bytes() const;

 private:
  /// What has been placed on one rank so far.
  struct Occupied {
    double busy = 0;     ///< lane seconds
    double longest = 0;  ///< least time of the slowest model
    int64_t model_bytes = 0;
    int64_t region_bytes = 0;  ///< of one lane
    int64_t model_count = 0;
    train::StreamedSets streams = {};

    double finish(const RankCapacity& rank) const;
    int64_t bytes(const RankCapacity& rank) const {
      return model_bytes + rank.lane_count * region_bytes + streams.most_bytes(rank.lane_count);
    }
  };

  Occupied with(size_t rank, const ModelCost& model, const comm::Team& team, size_t position) const;
  bool within_limit(size_t rank, const Occupied& after) const;
  std::optional<int> best_rank(const ModelCost& model, const comm::Team& team, int64_t length) const;
  bool fits(const ModelCost& model, const comm::Team& team) const;
  void occupy(size_t index, comm::Team team);

  const std::vector<ModelCost>& models_;
  const Cluster& cluster_;
  std::vector<Occupied> occupied_;
  Plan plan_;
};

}  // namespace tutti::partition

#endif
