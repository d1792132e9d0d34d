// A lane: an execution resource that runs one grain at a time.
#ifndef TUTTI_SRC_TRAIN_LANE_H
#define TUTTI_SRC_TRAIN_LANE_H

#include <atomic>
#include <cstdint>

#include "src/program/lane_allocator.h"

namespace tutti::train {

/// One CPU thread's resources: its region of memory, and counters which other threads may read.
struct Lane {
  Lane(int lane_index, int64_t region_bytes) : index(lane_index), region(region_bytes) {}

  int index;
  program::LaneRegion region;            ///< everything a grain allocates
  std::atomic<int64_t> work_count = 0;   ///< pieces of work done: the watchdog's sign of life
  std::atomic<int64_t> busy_ns = 0;      ///< time in visits
};

}  // namespace tutti::train

#endif
