// The command `tutti job-file`.
#include "launch/job_file_command.h"

#include <fmt/format.h>

#include "launch/command.h"
#include "launch/job.h"

namespace tutti::launch {

int job_file_command(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print(
        "Usage: tutti job-file\n\nPrints every key of a job file with type, default and meaning, as a Markdown "
        "page.\n\n"
        "Example: tutti job-file | less\n");
    return kDone;
  }
  if (!arguments.empty()) {
    throw UsageError(
        fmt::format("expected no arguments, found `{}`; `tutti job-file --help` tells more", arguments[0]));
  }
  fmt::print("{}", job_file_documentation());
  return kDone;
}

}  // namespace tutti::launch
