// Parameter groups: which of a model's parameters train, how fast, and with how much decay.
#ifndef TUTTI_SRC_TRAIN_PARAMETER_GROUPS_H
#define TUTTI_SRC_TRAIN_PARAMETER_GROUPS_H

#include <vector>

#include "src/graph/graph.h"
#include "src/train/model_spec.h"
#include "src/train/optimizer.h"

namespace tutti::train {

/// What the rules say for one parameter.
struct SegmentRule {
  bool trainable = true;
  double lr_factor = 1;     ///< of the schedule's rate
  double weight_decay = 0;  ///< after the rules; the optimizer's where they say nothing
  bool operator==(const SegmentRule&) const = default;
};

/// One SegmentRule per graph.parameters, in their order. The first rule that matches a parameter holds for it; without
/// one it has the optimizer's settings. A pattern is a shell pattern over the whole state-dict name (`*` also matches
/// dots), or `norms` (weights and biases of batch, layer, group and instance norm) or `biases` (parameters named
/// `bias`, `bias_...` or `..._bias` after their last dot).
/// A parameter that the graph marks as not trainable stays so.
/// Throws std::invalid_argument for a rule that matches no parameter; it names the nearest parameters.
std::vector<SegmentRule> resolve(const graph::Graph& graph, const std::vector<ParameterRule>& rules,
                                 const OptimizerSpec& optimizer);

}  // namespace tutti::train

#endif
