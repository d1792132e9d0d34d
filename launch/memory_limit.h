// How much memory a rank may use.
#ifndef TUTTI_LAUNCH_MEMORY_LIMIT_H
#define TUTTI_LAUNCH_MEMORY_LIMIT_H

#include <cstdint>

namespace tutti::launch {

/// The least of the cgroup's limit, Slurm's limit (SLURM_MEM_PER_NODE, SLURM_MEM_PER_CPU) and the machine's memory,
/// divided by the ranks of this node.
int64_t automatic_memory_bytes(int64_t local_rank_count);

}  // namespace tutti::launch

#endif
