// The file that takes a run's trace.
#ifndef TUTTI_LAUNCH_TRACE_FILE_H
#define TUTTI_LAUNCH_TRACE_FILE_H

#include "launch/job.h"

namespace tutti::launch {

/// Throws UsageError where the trace of this job (`run.trace` or --trace) would replace anything but an earlier trace
/// or an empty file.
void check_trace_file(const Job& job);

}  // namespace tutti::launch

#endif
