#include "src/train/buffer_average.h"

#include <ATen/ops/maximum.h>

#include <numeric>

namespace tutti::train {

namespace {

/// Sum over the grains [begin, begin + count) of rows * buffer, as the tree over the grains has it.
at::Tensor weighted_sum(const ModelMemory& memory, size_t buffer, std::span<const int64_t> rows, size_t begin,
                        size_t count) {
  if (count == 1) {
    return memory.grain_buffers[begin][buffer].to(at::kDouble) * static_cast<double>(rows[begin]);
  }
  return weighted_sum(memory, buffer, rows, begin, count / 2) +
         weighted_sum(memory, buffer, rows, begin + count / 2, count / 2);
}

}  // namespace

void average_buffers(ModelMemory& memory, std::span<const int64_t> grain_rows) {
  const size_t grains = memory.grain_buffers.size();
  const int64_t total = std::accumulate(grain_rows.begin(), grain_rows.end(), int64_t{0});
  for (size_t b = 0; b < memory.averaged_buffers.size(); ++b) {
    at::Tensor& average = memory.averaged_buffers[b];
    average.copy_(memory.grain_buffers[0][b]);
    if (grains == 1) continue;
    if (average.is_floating_point()) {
      if (total > 0) average.copy_(weighted_sum(memory, b, grain_rows, 0, grains) / static_cast<double>(total));
      continue;
    }
    for (size_t grain = 1; grain < grains; ++grain) {
      average.copy_(at::maximum(average, memory.grain_buffers[grain][b]));
    }
  }
}

}  // namespace tutti::train
