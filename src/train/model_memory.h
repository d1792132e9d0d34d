// One model's own memory on one rank: parameters, moments, gradients and buffers, as ranges of the fused buffers.
#ifndef TUTTI_SRC_TRAIN_MODEL_MEMORY_H
#define TUTTI_SRC_TRAIN_MODEL_MEMORY_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/graph/graph.h"
#include "src/train/fused_buffer.h"

namespace tutti::train {

/// One parameter's range within its model's flat range, in elements.
struct Segment {
  int64_t offset = 0;
  int64_t count = 0;
};

/// How a model lies in the fused buffers, and so how many bytes it takes.
struct ModelLayout {
  at::ScalarType precision = at::kFloat;
  std::vector<Segment> segments;  ///< by graph parameter
  int64_t element_count = 0;      ///< of one flat range, padding included
  int64_t moment_count = 0;
  int64_t gradient_count = 0;  ///< flat gradient ranges: one per grain at work, and pending partial sums
  int64_t grain_count = 1;     ///< every grain has its own graph buffers (running statistics)

  static ModelLayout of(const graph::Graph& graph, at::ScalarType precision, int64_t moment_count,
                        int64_t gradient_count, int64_t grain_count);

  int64_t flat_bytes() const { return element_count * static_cast<int64_t>(c10::elementSize(precision)); }
};

/// The fused buffers of one rank: one allocation each for parameters, gradients and every moment, and one for the
/// graphs' own buffers. Its size is known before anything is allocated.
class FusedBuffers {
 public:
  /// Room for models with these layouts and graphs (same order).
  FusedBuffers(const std::vector<ModelLayout>& layouts, const std::vector<const graph::Graph*>& graphs);

  int64_t size_bytes() const;

  /// What a model with this layout takes of each kind; for plans.
  static int64_t bytes_of(const ModelLayout& layout, const graph::Graph& graph);

  FusedBuffer parameters, gradients, buffers;
  std::vector<FusedBuffer> moments;
};

/// Views of one model's ranges. All flat tensors are as long as the layout's element_count; padding stays zero.
struct ModelMemory {
  /// Takes the next ranges of the fused buffers; buffers hold their initial values afterwards, all else is zero.
  ModelMemory(ModelLayout layout, const graph::Graph& graph, FusedBuffers& fused);

  ModelLayout layout;
  at::Tensor parameters;                                ///< flat
  std::vector<at::Tensor> parameter_views;              ///< by graph parameter, in its shape
  std::vector<at::Tensor> moments;                      ///< flat, by moment
  std::vector<at::Tensor> gradients;                    ///< flat, the pool
  std::vector<std::vector<at::Tensor>> gradient_views;  ///< by pool entry, by graph parameter
  at::Tensor grain_blocks;                              ///< uint8 [grains, block bytes]: every grain's buffers
  std::vector<std::vector<at::Tensor>> grain_buffers;   ///< by grain, by graph buffer
  std::vector<at::Tensor> averaged_buffers;             ///< by graph buffer: for evaluation and export

  /// Under the address sanitizer: from now on every access to a flat tensor's padding is reported, or no longer. What
  /// works on whole flat tensors (gradients) needs the padding open.
  void guard_padding(const at::Tensor& flat) const;
  void open_padding(const at::Tensor& flat) const;

  /// The piece of a flat tensor that belongs to a parameter, in its shape, with its own version counter.
  at::Tensor view(const at::Tensor& flat, const graph::Graph& graph, int64_t parameter) const;
};

}  // namespace tutti::train

#endif
