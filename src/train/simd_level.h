// Runs one body of code compiled for several instruction-set levels; the best one the CPU has is chosen at run time.
#ifndef TUTTI_SRC_TRAIN_SIMD_LEVEL_H
#define TUTTI_SRC_TRAIN_SIMD_LEVEL_H

#include <vector>

#if defined(__x86_64__)
#define TUTTI_TARGET_AVX2 [[gnu::target("avx2")]]
#define TUTTI_TARGET_AVX512 [[gnu::target("avx512f,prefer-vector-width=512")]]
#else
#define TUTTI_TARGET_AVX2
#define TUTTI_TARGET_AVX512
#endif

namespace tutti::train {

/// An instruction-set level. The bits a body computes are the same at every level as long as it uses plain IEEE
/// operations in a written order (the build has -ffp-contract=off and no -ffast-math); a level changes the speed only.
enum class SimdLevel { kBaseline, kAvx2, kAvx512 };

/// The levels this CPU has, from the least to the best.
std::vector<SimdLevel> simd_levels();

/// The last of simd_levels(), looked up once.
SimdLevel best_simd_level();

template <typename Body>
void run_baseline(Body& body) {
  body();
}

template <typename Body>
TUTTI_TARGET_AVX2 void run_avx2(Body& body) {
  body();
}

template <typename Body>
TUTTI_TARGET_AVX512 void run_avx512(Body& body) {
  body();
}

/// Calls `body()` compiled for `level`. Its operator(), and all that calls, must be [[gnu::always_inline]]: what is not
/// inlined stays at the baseline.
template <typename Body>
void run_at(SimdLevel level, Body& body) {
  switch (level) {
    case SimdLevel::kBaseline:
      return run_baseline(body);
    case SimdLevel::kAvx2:
      return run_avx2(body);
    case SimdLevel::kAvx512:
      return run_avx512(body);
  }
}

}  // namespace tutti::train

#endif
