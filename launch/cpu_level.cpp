#include "launch/cpu_level.h"

#include <algorithm>
#include <cstdlib>

namespace tutti::launch {

namespace {

CpuLevel hardware_level() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) return CpuLevel::kAvx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? CpuLevel::kAvx2 : CpuLevel::kBaseline;
}

}  // namespace

std::string name_of(CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline: return "baseline";
    case CpuLevel::kAvx2: return "avx2";
    case CpuLevel::kAvx512: return "avx512";
  }
  return "unknown";
}

CpuLevel cpu_level() {
  const char* wanted = std::getenv("TUTTI_CPU_LEVEL");
  for (const CpuLevel level : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (wanted != nullptr && name_of(level) == wanted) return std::min(level, hardware_level());
  }
  return hardware_level();
}

void pin_cpu_level(CpuLevel level) {
  const bool avx512 = level == CpuLevel::kAvx512;
  const bool avx2 = level == CpuLevel::kAvx2;
  setenv("ATEN_CPU_CAPABILITY", avx512 ? "avx512" : avx2 ? "avx2" : "default", 1);
  setenv("ONEDNN_MAX_CPU_ISA", avx512 ? "AVX512_CORE" : avx2 ? "AVX2" : "SSE41", 1);
  setenv("MKL_CBWR", avx512 ? "AVX512" : avx2 ? "AVX2" : "COMPATIBLE", 1);
}

}  // namespace tutti::launch
