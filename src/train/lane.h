// A lane: an execution resource that runs one grain at a time.
#ifndef TUTTI_SRC_TRAIN_LANE_H
#define TUTTI_SRC_TRAIN_LANE_H

#include <atomic>
#include <cstdint>
#include <string>

#include "src/program/lane_region.h"
#include "src/train/thread_clock.h"

namespace tutti::train {

/// One CPU thread's resources: its region of memory, and counters which other threads may read.
struct Lane {
  Lane(int lane_index, int64_t region_bytes) : index(lane_index), region(region_bytes) {}

  int index;
  program::LaneRegion region;              ///< everything a grain allocates; touched by the lane's thread only
  std::atomic<int64_t> region_extent = 0;  ///< the region's extent after the last grain
  std::atomic<int64_t> work_count = 0;     ///< pieces of work done
  std::atomic<const std::string*> visited = nullptr;  ///< name of the model it works for; null while it waits
  std::atomic<int64_t> busy_ns = 0;                   ///< time in visits
  ThreadClock cpu_clock;                              ///< of the lane's thread, once it runs

  /// A number that grows while the lane computes or writes, also within a long grain or a large checkpoint: the
  /// watchdog's sign of life.
  int64_t signs_of_life() const { return work_count + cpu_clock.used_us(); }
};

}  // namespace tutti::train

#endif
