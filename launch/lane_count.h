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
  std::vector<int> cpus;        ///< of the affinity mask
  int64_t online_count = 0;     ///< CPUs of the host
};

CpuShare own_cpu_share();
std::string to_text(const CpuShare& share);
CpuShare cpu_share_from(const std::string& text);

struct LaneChoice {
  int64_t lane_count = 1;
  std::vector<std::string> warnings;  ///< for rank 0 to print, each once
};

/// The lanes of rank `rank`, where `shares` holds every rank's CPUs. `wanted` 0 = auto: the CPUs of the mask, divided by
/// the ranks of the same host that have the same mask. Warns of lanes beyond the CPUs, and of CPUs that no rank uses.
LaneChoice choose_lanes(const std::vector<CpuShare>& shares, int rank, int64_t wanted);

}  // namespace tutti::launch

#endif
