// A lane: an execution resource that runs one grain at a time.
#ifndef TUTTI_SRC_TRAIN_LANE_H
#define TUTTI_SRC_TRAIN_LANE_H

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>

#include "src/program/lane_region.h"

namespace tutti::train {

/// One CPU thread's resources: its region of memory, and counters which other threads may read.
struct Lane {
  Lane(int lane_index, int64_t region_bytes) : index(lane_index), region(region_bytes) {}

  int index;
  program::LaneRegion region;              ///< everything a grain allocates; touched by the lane's thread only
  std::atomic<int64_t> region_extent = 0;  ///< the region's extent after the last grain
  std::atomic<int64_t> work_count = 0;     ///< pieces of work done
  std::atomic<const std::string*> visited = nullptr;            ///< name of the model it works for; null while it waits
  std::atomic<int64_t> busy_ns = 0;                             ///< time in visits
  std::atomic<clockid_t> cpu_clock = CLOCK_PROCESS_CPUTIME_ID;  ///< of the lane's thread, once it runs

  /// A number that grows while the lane computes, also within a long grain: the watchdog's sign of life.
  int64_t signs_of_life() const {
    timespec used = {};
    clock_gettime(cpu_clock, &used);
    return work_count + int64_t{used.tv_sec} * 10 + used.tv_nsec / 100'000'000;
  }
};

}  // namespace tutti::train

#endif
