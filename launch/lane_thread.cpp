#include "launch/lane_thread.h"

#include "launch/cpu_level.h"
#include "src/program/lane_allocator.h"
#include "src/train/lanes.h"

namespace tutti::launch {

void compute_as_lane() {
  pin_cpu_level(cpu_level());
  program::install_lane_allocator();
  train::use_one_intra_op_thread();
}

}  // namespace tutti::launch
