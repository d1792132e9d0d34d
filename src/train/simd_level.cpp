// The instruction-set levels of this CPU.
#include "src/train/simd_level.h"

namespace tutti::train {

#if defined(__x86_64__)
std::vector<SimdLevel> simd_levels() {
  std::vector<SimdLevel> levels = {SimdLevel::kBaseline};
  if (__builtin_cpu_supports("avx2")) levels.push_back(SimdLevel::kAvx2);
  if (__builtin_cpu_supports("avx512f")) levels.push_back(SimdLevel::kAvx512);
  return levels;
}
#else
std::vector<SimdLevel> simd_levels() { return {SimdLevel::kBaseline}; }
#endif

SimdLevel best_simd_level() {
  static const SimdLevel best = simd_levels().back();
  return best;
}

}  // namespace tutti::train
