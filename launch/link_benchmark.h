// How fast messages and exact sums are between ranks.
#ifndef TUTTI_LAUNCH_LINK_BENCHMARK_H
#define TUTTI_LAUNCH_LINK_BENCHMARK_H

#include <vector>

#include "comm/communicator.h"
#include "comm/deadline.h"
#include "launch/calibration.h"

namespace tutti::launch {

struct RankPair {
  int first = 0;
  int second = 0;
};

/// All pairs of up to 32 ranks; of more, those whose distance is a power of two, which tree sums use: the number of all
/// pairs grows with the square.
std::vector<RankPair> pairs_to_measure(int rank_count);

/// Ping-pong between the pairs of ranks, one after the other, with messages of two sizes. Collective; rank 0 gets the
/// result, the others an empty list. Throws comm::SilentRank.
std::vector<LinkSpeed> measure_links(comm::Communicator& communicator, const comm::Deadline& deadline);

/// Exact sums of three sizes over all ranks, with the time that `link` predicts. Collective, the same on all ranks but
/// for the time, which is each rank's own. Empty for one rank.
std::vector<SumTime> measure_sums(comm::Communicator& communicator, const comm::Deadline& deadline,
                                  const partition::Link& link);

}  // namespace tutti::launch

#endif
