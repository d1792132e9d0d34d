// What the members of a team send each other while they train a model, as work for the communication thread.
#ifndef TUTTI_SRC_TRAIN_TEAM_EXCHANGE_H
#define TUTTI_SRC_TRAIN_TEAM_EXCHANGE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange_queue.h"
#include "comm/team.h"
#include "comm/tree_sum.h"
#include "src/train/grain_sum.h"

namespace tutti::train {

/// How gradients are summed over a team.
enum class Reduction {
  kExact,  ///< in the order of the tree over the grains: the same bits for every placement (comm::TreeSum)
  kFast,   ///< fewer bytes where members do not own whole subtrees; bits depend on the team (comm::FastSum)
};

/// One model's line to its team. A model has at most one exchange in flight.
struct TeamLine {
  comm::Communicator* communicator = nullptr;
  comm::ExchangeQueue* queue = nullptr;
  comm::Team team;
  int tag = 0;  ///< tag and tag + 1 are the model's own
  Reduction reduction = Reduction::kExact;
};

/// What a sum came to.
struct SumOutcome {
  std::vector<double> scalars;
  comm::Verdict verdict;
};

/// The memory that post_sum() takes on this rank while the sum is in flight, beside what it is given.
int64_t sum_buffer_bytes(const TeamLine& line, at::ScalarType type, int64_t element_count, int64_t scalar_count);

/// Posts the sum, over the team, of what this rank's grains came to. `flats` are the parts' gradients, in the parts'
/// order (float or double; empty: only the scalars are summed); the sum takes the place of the first. `done` runs on
/// the communication thread. Every tensor must stay untouched until then.
void post_sum(const TeamLine& line, std::vector<at::Tensor> flats, std::vector<std::vector<double>> scalars,
              comm::Word word, std::string description, std::function<void(SumOutcome)> done);

/// Posts the exchange of the grains' blocks: afterwards `blocks` ([grains or more, bytes], uint8) holds every grain's
/// row on every member. `done` runs on the communication thread.
void post_share(const TeamLine& line, at::Tensor blocks, std::string description, std::function<void()> done);

}  // namespace tutti::train

#endif
