// How fast one lane is.
#ifndef TUTTI_LAUNCH_LANE_BENCHMARK_H
#define TUTTI_LAUNCH_LANE_BENCHMARK_H

#include "launch/calibration.h"

namespace tutti::launch {

/// Measures the calling thread, which must compute as a lane (compute_as_lane), for about a second. Rank and host are
/// the caller's to fill in.
LaneSpeed measure_lane();

}  // namespace tutti::launch

#endif
