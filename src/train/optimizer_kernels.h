// The loops of the optimizers over flat ranges, at a chosen instruction-set level.
#ifndef TUTTI_SRC_TRAIN_OPTIMIZER_KERNELS_H
#define TUTTI_SRC_TRAIN_OPTIMIZER_KERNELS_H

#include <cstdint>
#include <optional>
#include <span>

#include "src/train/optimizer.h"
#include "src/train/simd_level.h"

namespace tutti::train {

/// apply() at a given level; the bits are the same at every level.
template <typename Element>
void apply_at(SimdLevel level, const OptimizerSpec& spec, int64_t step, double gradient_scale,
              std::optional<double> clip_value, const SegmentView<Element>& segment);

/// squared_norm() at a given level; the bits are the same at every level.
template <typename Element>
double squared_norm_at(SimdLevel level, std::span<const Element> gradient);

}  // namespace tutti::train

#endif
