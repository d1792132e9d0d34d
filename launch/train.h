// `tutti train`: trains all models of a job file.
#ifndef TUTTI_LAUNCH_TRAIN_H
#define TUTTI_LAUNCH_TRAIN_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Runs under mpirun or srun, or alone. Returns the exit code (command.h).
int train_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
