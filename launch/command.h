// What every command of the `tutti` program has in common: exit codes, version, and how faults are reported.
#ifndef TUTTI_LAUNCH_COMMAND_H
#define TUTTI_LAUNCH_COMMAND_H

#include <stdexcept>
#include <string>

#include "comm/last_words.h"

namespace tutti::launch {

/// Exit codes, the same through mpirun and srun.
enum ExitCode : int {
  kDone = 0,                             ///< all models finished
  kBadInput = 2,                         ///< command line, job file or data are at fault; nothing was trained
  kSomeModelsFailed = 3,                 ///< the other models finished
  kInternal = comm::kInternalErrorExit,  ///< 70: a fault of the program or of the machine
  kRequeue = 75,                         ///< checkpointed before the end: start again with --resume
};

/// A fault of the user's input; the message says what was expected, what was found, where, and what to do.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tutti::launch

#endif
