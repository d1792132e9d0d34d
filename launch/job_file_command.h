// The command `tutti job-file`.
#ifndef TUTTI_LAUNCH_JOB_FILE_COMMAND_H
#define TUTTI_LAUNCH_JOB_FILE_COMMAND_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Prints docs/job-file.md, made from the declarations of the keys; returns the exit code. Throws UsageError for
/// arguments that make no sense.
int job_file_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
