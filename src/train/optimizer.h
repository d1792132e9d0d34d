// Optimizers on flat ranges of parameters: PyTorch's definitions, one pass, per-segment settings.
#ifndef TUTTI_SRC_TRAIN_OPTIMIZER_H
#define TUTTI_SRC_TRAIN_OPTIMIZER_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tutti::train {

/// The settings of one optimizer, with PyTorch's names and defaults (torch.optim.SGD, Adam, AdamW, RMSprop, Adagrad).
struct OptimizerSpec {
  enum class Kind { kSgd, kAdam, kAdamW, kRmsprop, kAdagrad };
  Kind kind = Kind::kSgd;
  double lr = 1e-3;
  double weight_decay = 0;               ///< AdamW: 1e-2
  double momentum = 0;                   ///< SGD, RMSprop
  double dampening = 0;                  ///< SGD
  bool nesterov = false;                 ///< SGD
  double beta1 = 0.9, beta2 = 0.999;     ///< Adam, AdamW
  double eps = 1e-8;                     ///< Adam, AdamW, RMSprop; Adagrad: 1e-10
  bool amsgrad = false;                  ///< Adam, AdamW
  double alpha = 0.99;                   ///< RMSprop
  bool centered = false;                 ///< RMSprop
  double lr_decay = 0;                   ///< Adagrad
  double initial_accumulator_value = 0;  ///< Adagrad

  /// How many moments (flat ranges as long as the parameters) it keeps.
  int moment_count() const;
  /// Their names in state.safetensors, PyTorch's: "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer"...
  std::vector<std::string> moment_names() const;
  /// What a moment starts with (Adagrad's accumulator; else 0).
  double initial_moment(int moment) const;
};

/// Gradient clipping, before the optimizer (torch.nn.utils.clip_grad_norm_, clip_grad_value_).
struct ClipSpec {
  std::optional<double> norm;
  std::optional<double> value;
};

/// What one segment's step uses: the spec's numbers after parameter groups and schedule.
struct SegmentSettings {
  double lr = 0;
  double weight_decay = 0;
  double momentum = 0;  ///< SGD's momentum, Adam's beta1: one-cycle moves it
};

/// One tensor's range in a model's flat buffers.
template <typename Element>
struct SegmentView {
  std::span<Element> parameter;
  std::span<const Element> gradient;        ///< sum over the global batch, not divided
  std::vector<std::span<Element>> moments;  ///< moment_count() of them
  SegmentSettings settings;
};

/// The squared L2 norm of a gradient, summed over fixed chunks of 4,096 elements in a fixed binary tree, in double;
/// non-finite exactly when an element (or the sum) is.
template <typename Element>
double squared_norm(std::span<const Element> gradient);

/// The factor that clips a gradient of L2 norm `norm` to at most `max_norm`, as torch.nn.utils.clip_grad_norm_ does:
/// min(1, max_norm / (norm + 1e-6)). `norm` must be finite.
double clip_scale(double norm, double max_norm);

/// Applies one optimizer step number `step` (1 for the first) to one segment. The gradient used is
/// clamp(gradient * gradient_scale, ±clip_value); gradient_scale holds the division by the loss's denominator and the
/// clipping by norm. settings.momentum holds the momentum of this step: the spec's momentum (or beta1) where no
/// schedule moves it. Parameter, gradient and moments must not overlap. The bits do not depend on the CPU's
/// instruction-set level, nor on how a parameter is cut into segments. Throws std::invalid_argument when lengths or the
/// number of moments do not fit, or step < 1.
template <typename Element>
void apply(const OptimizerSpec& spec, int64_t step, double gradient_scale, std::optional<double> clip_value,
           const SegmentView<Element>& segment);

}  // namespace tutti::train

#endif
