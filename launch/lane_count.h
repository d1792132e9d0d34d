// How many lanes a rank gets: by the CPUs it may use, and the ranks it shares them with.
#ifndef TUTTI_LAUNCH_LANE_COUNT_H
#define TUTTI_LAUNCH_LANE_COUNT_H

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::launch {

/// The CPUs one rank may use, as it found them.
struct CpuShare {
  std::string host;
  std::vector<int> cpus;     ///< of the affinity mask
  int64_t online_count = 0;  ///< CPUs of the host
};

CpuShare own_cpu_share();
std::string to_text(const CpuShare& share);
CpuShare cpu_share_from(const std::string& text);

struct LaneChoice {
  int64_t lane_count = 1;
  std::vector<std::string> warnings;  ///< for rank 0 to print, each once
};

/// The lanes of rank `rank`, where `shares` holds every rank's CPUs. `wanted` 0 = auto: the CPUs of the mask, where one
/// that k ranks of the host may use counts as 1/k, rounded down; at least 1. Warns of hosts whose ranks together have
/// more lanes than CPUs, and of CPUs that no rank may use.
LaneChoice choose_lanes(const std::vector<CpuShare>& shares, int rank, int64_t wanted);

}  // namespace tutti::launch

#endif
