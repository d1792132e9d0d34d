// Running statistics for evaluation and export: the average over the grains that each kept their own.
#ifndef TUTTI_SRC_TRAIN_BUFFER_AVERAGE_H
#define TUTTI_SRC_TRAIN_BUFFER_AVERAGE_H

#include <cstdint>
#include <span>

#include "src/train/model_memory.h"

namespace tutti::train {

/// Fills memory.averaged_buffers. Floating-point buffers: the mean over the grains weighted by the rows each has seen,
/// summed in double in the order of the binary tree over the grains; before any training, grain 0's. Integer buffers
/// (counters): the greatest. With one grain the average is that grain's bits.
void average_buffers(ModelMemory& memory, std::span<const int64_t> grain_rows);

}  // namespace tutti::train

#endif
