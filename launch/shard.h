// The command `tutti shard`: makes shards from files of other formats.
#ifndef TUTTI_LAUNCH_SHARD_H
#define TUTTI_LAUNCH_SHARD_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Runs `tutti shard ARGUMENTS`, and returns its exit code. Throws UsageError for arguments or files that are at fault.
int shard_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
