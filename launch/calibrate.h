// The command `tutti calibrate`.
#ifndef TUTTI_LAUNCH_CALIBRATE_H
#define TUTTI_LAUNCH_CALIBRATE_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Measures lanes and links of all ranks. Collective over the ranks that mpirun or srun started.
int calibrate_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
