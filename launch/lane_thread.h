// Commands that compute on the main thread, as one lane.
#ifndef TUTTI_LAUNCH_LANE_THREAD_H
#define TUTTI_LAUNCH_LANE_THREAD_H

namespace tutti::launch {

/// Makes this process compute as a lane of a training does: this CPU's kernels, aligned tensors, one thread. Must run
/// before the first operation of LibTorch.
void compute_as_lane();

}  // namespace tutti::launch

#endif
