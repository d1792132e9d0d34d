#include "src/train/model_update.h"

#include <cmath>
#include <span>

namespace tutti::train {

namespace {

template <typename Element>
std::span<Element> range(const at::Tensor& flat, const Segment& segment) {
  return {flat.data_ptr<Element>() + segment.offset, static_cast<size_t>(segment.count)};
}

/// Calls `action` with a null pointer of the precision's element type.
template <typename Action>
auto with_element_type(at::ScalarType precision, const Action& action) {
  return precision == at::kDouble ? action(static_cast<double*>(nullptr)) : action(static_cast<float*>(nullptr));
}

double momentum_of(const OptimizerSpec& spec, const Rates& rates) {
  if (rates.momentum) return *rates.momentum;
  const bool adam = spec.kind == OptimizerSpec::Kind::kAdam || spec.kind == OptimizerSpec::Kind::kAdamW;
  return adam ? spec.beta1 : spec.momentum;
}

}  // namespace

ModelUpdate::ModelUpdate(const ModelSpec& spec, const graph::Graph& graph, ModelMemory& memory)
    : spec_(spec), memory_(memory), rules_(resolve(graph, spec.parameter_rules, spec.optimizer)) {
  for (size_t moment = 0; moment < memory.moments.size(); ++moment) {
    const double initial = spec.optimizer.initial_moment(static_cast<int>(moment));
    if (initial == 0) continue;
    for (size_t p = 0; p < graph.parameters.size(); ++p) {
      memory.view(memory.moments[moment], graph, static_cast<int64_t>(p)).fill_(initial);
    }
  }
}

double ModelUpdate::gradient_norm(const at::Tensor& gradient, double denominator) const {
  return with_element_type(memory_.layout.precision, [&]<typename Element>(Element*) {
    const std::span<const Element> all(gradient.data_ptr<Element>(), static_cast<size_t>(gradient.numel()));
    return std::sqrt(squared_norm<Element>(all)) / denominator;
  });
}

void ModelUpdate::apply(const at::Tensor& gradient, double denominator, double norm, int64_t step, const Rates& rates) {
  const double clip = spec_.clip.norm ? clip_scale(norm, *spec_.clip.norm) : 1.0;
  const double momentum = momentum_of(spec_.optimizer, rates);
  with_element_type(memory_.layout.precision, [&]<typename Element>(Element*) {
    for (size_t p = 0; p < rules_.size(); ++p) {
      const Segment& segment = memory_.layout.segments[p];
      if (!rules_[p].trainable || segment.count == 0) continue;
      SegmentView<Element> view{range<Element>(memory_.parameters, segment), range<Element>(gradient, segment), {}, {}};
      for (const at::Tensor& moment : memory_.moments) view.moments.push_back(range<Element>(moment, segment));
      view.settings = {rates.lr * rules_[p].lr_factor, rules_[p].weight_decay, momentum};
      train::apply<Element>(spec_.optimizer, step + 1, clip / denominator, spec_.clip.value, view);
    }
    return 0;
  });
}

}  // namespace tutti::train
