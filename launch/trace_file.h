// The file that takes a run's trace.
#ifndef TUTTI_LAUNCH_TRACE_FILE_H
#define TUTTI_LAUNCH_TRACE_FILE_H

#include "launch/job.h"

namespace tutti::launch {

/// Throws UsageError where the trace of this job (`run.trace` or --trace) would replace anything but an earlier trace
/// or an empty file, or has the name of a file that the run itself writes in its output folder.
void check_trace_file(const Job& job);

}  // namespace tutti::launch

#endif
