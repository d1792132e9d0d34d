// The allocator behind ATen: tensors of a lane come from its region, all others from the system.
#ifndef TUTTI_SRC_PROGRAM_LANE_ALLOCATOR_H
#define TUTTI_SRC_PROGRAM_LANE_ALLOCATOR_H

#include "src/program/lane_region.h"

namespace tutti::program {

/// Makes all CPU tensors of this process come from the lane allocator: from the region that the thread uses
/// (LaneRegion::Use), otherwise from the system, 64-byte aligned. Call it before any thread makes tensors;
/// later calls do nothing. Tensors that exist already stay valid. The memory that oneDNN and MKL take for themselves
/// does not pass through here.
void install_lane_allocator();

}  // namespace tutti::program

#endif
