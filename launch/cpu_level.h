// The instruction-set level of the CPU, and the pinning of all libraries to one that every rank has.
#ifndef TUTTI_LAUNCH_CPU_LEVEL_H
#define TUTTI_LAUNCH_CPU_LEVEL_H

#include <string>

namespace tutti::launch {

/// From the least to the best.
enum class CpuLevel { kBaseline, kAvx2, kAvx512 };

std::string name_of(CpuLevel level);

/// This CPU's level, but at most what the environment variable TUTTI_CPU_LEVEL (baseline, avx2, avx512) allows.
CpuLevel cpu_level();

/// Sets the environment variables by which ATen, oneDNN and MKL choose their kernels. Must run before the first
/// operation of LibTorch in this process.
void pin_cpu_level(CpuLevel level);

}  // namespace tutti::launch

#endif
