// One optimizer step of one model: from the sum of its gradients to its new parameters.
#ifndef TUTTI_SRC_TRAIN_MODEL_UPDATE_H
#define TUTTI_SRC_TRAIN_MODEL_UPDATE_H

#include <cstdint>
#include <vector>

#include "src/train/model_memory.h"
#include "src/train/model_spec.h"
#include "src/train/parameter_groups.h"
#include "src/train/schedule.h"

namespace tutti::train {

/// Applies gradients to a model's parameters and moments.
class ModelUpdate {
 public:
  /// `spec` and `memory` must outlive this. Moments get their initial values.
  ModelUpdate(const ModelSpec& spec, const graph::Graph& graph, ModelMemory& memory);

  /// L2 norm of the gradient of the mean loss, where `gradient` is the flat sum and `denominator` divides it. Not
  /// finite where an element of the gradient is not.
  double gradient_norm(const at::Tensor& gradient, double denominator) const;

  /// Step number `step` (0 for the first) with these rates. Clips by norm with `norm`, gradient_norm()'s result.
  void apply(const at::Tensor& gradient, double denominator, double norm, int64_t step, const Rates& rates);

 private:
  const ModelSpec& spec_;
  ModelMemory& memory_;
  std::vector<SegmentRule> rules_;  ///< by graph parameter
};

}  // namespace tutti::train

#endif
