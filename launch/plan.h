// The command `tutti plan`.
#ifndef TUTTI_LAUNCH_PLAN_H
#define TUTTI_LAUNCH_PLAN_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Shows what training a job would take on some ranks, without MPI and without training. Throws UsageError for faults
/// of the command line or the job, and when a model cannot fit.
int plan_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
