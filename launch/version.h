// The command `tutti version`, and the versions that summaries and checks between ranks use.
#ifndef TUTTI_LAUNCH_VERSION_H
#define TUTTI_LAUNCH_VERSION_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::launch {

/// Version and commit of this program: "0.1.0 (1a2b3c4d5e6f)".
std::string program_version();

/// {"tutti", "libtorch", "mpi", "hdf5", "build", "cpu_level"}.
nlohmann::json version_info();

/// Runs `tutti version ARGUMENTS`, and returns its exit code. Throws UsageError for arguments that make no sense.
int version_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
