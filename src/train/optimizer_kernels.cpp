// The loops of the optimizers over flat ranges: one pass over parameter, gradient and moments.
//
// Each optimizer is a small struct with its coefficients in the element's type and an operator() for one element; the
// loop around it is written once. Formulas and their order of operations are those of torch.optim (single tensor,
// PyTorch 2.11), so that results differ from PyTorch's by rounding only.
#include "src/train/optimizer_kernels.h"

#include <cmath>
#include <limits>

namespace tutti::train {
namespace {

/// Moves `from` a fraction `weight` towards `to`, as torch.lerp: it starts from the nearer end.
template <typename Element>
struct Lerp {
  explicit Lerp(double weight)
      : near_start(std::abs(weight) < 0.5), factor(static_cast<Element>(near_start ? weight : weight - 1)) {}

  [[gnu::always_inline]] Element operator()(Element from, Element to) const {
    return (near_start ? from : to) + factor * (to - from);
  }

  bool near_start;
  Element factor;
};

enum class SgdForm { kPlain, kMomentum, kNesterov };

template <typename Element, SgdForm kForm>
struct Sgd {
  static constexpr int kMoments = kForm == SgdForm::kPlain ? 0 : 1;

  /// The first step sets the buffer to the gradient: dampening does not apply.
  Sgd(const OptimizerSpec& spec, int64_t step, const SegmentSettings& settings)
      : minus_lr(static_cast<Element>(-settings.lr)),
        weight_decay(static_cast<Element>(settings.weight_decay)),
        momentum(static_cast<Element>(settings.momentum)),
        kept(step == 1 ? Element{0} : momentum),
        added(static_cast<Element>(step == 1 ? 1 : 1 - spec.dampening)) {}

  [[gnu::always_inline]] void operator()(Element& parameter, Element gradient, Element* moment) const {
    gradient += weight_decay * parameter;
    if constexpr (kForm != SgdForm::kPlain) {
      moment[0] = moment[0] * kept + added * gradient;
      gradient = kForm == SgdForm::kNesterov ? gradient + momentum * moment[0] : moment[0];
    }
    parameter += minus_lr * gradient;
  }

  Element minus_lr, weight_decay, momentum, kept, added;
};

enum class Decay { kInGradient, kDecoupled };
enum class Denominator { kCurrent, kMaximum };

/// Adam and AdamW (decoupled decay), with AMSGrad (the greatest second moment so far divides).
template <typename Element, Decay kDecay, Denominator kDenominator>
struct Adam {
  static constexpr int kMoments = kDenominator == Denominator::kMaximum ? 3 : 2;

  Adam(const OptimizerSpec& spec, int64_t step, const SegmentSettings& settings)
      : first(1 - settings.momentum),
        weight_decay(static_cast<Element>(settings.weight_decay)),
        kept_parameter(static_cast<Element>(1 - settings.lr * settings.weight_decay)),
        beta2(static_cast<Element>(spec.beta2)),
        one_minus_beta2(static_cast<Element>(1 - spec.beta2)),
        eps(static_cast<Element>(spec.eps)) {
    const auto count = static_cast<double>(step);
    const double correction1 = 1 - std::pow(settings.momentum, count);
    const double correction2 = 1 - std::pow(spec.beta2, count);
    minus_step_size = static_cast<Element>(-(settings.lr / correction1));
    correction2_sqrt = static_cast<Element>(std::sqrt(correction2));
  }

  [[gnu::always_inline]] void operator()(Element& parameter, Element gradient, Element* moment) const {
    if constexpr (kDecay == Decay::kDecoupled) {
      parameter *= kept_parameter;
    } else {
      gradient += weight_decay * parameter;
    }
    moment[0] = first(moment[0], gradient);
    moment[1] = moment[1] * beta2 + one_minus_beta2 * gradient * gradient;
    Element second = moment[1];
    if constexpr (kDenominator == Denominator::kMaximum) {
      second = moment[2] = moment[2] > second ? moment[2] : second;
    }
    parameter += minus_step_size * moment[0] / (std::sqrt(second) / correction2_sqrt + eps);
  }

  Lerp<Element> first;
  Element weight_decay, kept_parameter, beta2, one_minus_beta2, eps;
  Element minus_step_size, correction2_sqrt;
};

enum class Centring { kNone, kCentred };
enum class MomentumUse { kNone, kUsed };

/// Moments: square average, momentum buffer if used, gradient average if centred.
template <typename Element, MomentumUse kMomentum, Centring kCentring>
struct Rmsprop {
  static constexpr int kBuffer = 1;
  static constexpr int kAverage = kMomentum == MomentumUse::kUsed ? 2 : 1;
  static constexpr int kMoments = kAverage + (kCentring == Centring::kCentred ? 1 : 0);

  Rmsprop(const OptimizerSpec& spec, int64_t /*step*/, const SegmentSettings& settings)
      : average(1 - spec.alpha),
        minus_lr(static_cast<Element>(-settings.lr)),
        weight_decay(static_cast<Element>(settings.weight_decay)),
        momentum(static_cast<Element>(settings.momentum)),
        alpha(static_cast<Element>(spec.alpha)),
        one_minus_alpha(static_cast<Element>(1 - spec.alpha)),
        eps(static_cast<Element>(spec.eps)) {}

  [[gnu::always_inline]] void operator()(Element& parameter, Element gradient, Element* moment) const {
    gradient += weight_decay * parameter;
    moment[0] = moment[0] * alpha + one_minus_alpha * gradient * gradient;
    Element variance = moment[0];
    if constexpr (kCentring == Centring::kCentred) {
      moment[kAverage] = average(moment[kAverage], gradient);
      variance -= moment[kAverage] * moment[kAverage];
    }
    const Element divisor = std::sqrt(variance) + eps;
    if constexpr (kMomentum == MomentumUse::kUsed) {
      moment[kBuffer] = moment[kBuffer] * momentum + gradient / divisor;
      parameter += minus_lr * moment[kBuffer];
    } else {
      parameter += minus_lr * gradient / divisor;
    }
  }

  Lerp<Element> average;
  Element minus_lr, weight_decay, momentum, alpha, one_minus_alpha, eps;
};

template <typename Element>
struct Adagrad {
  static constexpr int kMoments = 1;

  Adagrad(const OptimizerSpec& spec, int64_t step, const SegmentSettings& settings)
      : minus_lr(static_cast<Element>(-(settings.lr / (1 + static_cast<double>(step - 1) * spec.lr_decay)))),
        weight_decay(static_cast<Element>(settings.weight_decay)),
        eps(static_cast<Element>(spec.eps)) {}

  [[gnu::always_inline]] void operator()(Element& parameter, Element gradient, Element* moment) const {
    gradient += weight_decay * parameter;
    moment[0] += gradient * gradient;
    parameter += minus_lr * gradient / (std::sqrt(moment[0]) + eps);
  }

  Element minus_lr, weight_decay, eps;
};

/// What is done to a gradient before any optimizer sees it.
template <typename Element>
struct GradientInput {
  GradientInput(double gradient_scale, std::optional<double> clip_value)
      : scale(static_cast<Element>(gradient_scale)),
        limit(static_cast<Element>(clip_value.value_or(std::numeric_limits<double>::infinity()))) {}

  /// A NaN stays NaN, as in torch.clamp.
  [[gnu::always_inline]] Element operator()(Element gradient) const {
    const Element scaled = gradient * scale;
    const Element bounded = scaled > limit ? limit : scaled;
    return bounded < -limit ? -limit : bounded;
  }

  Element scale, limit;
};

/// The loop over one segment. Every element is computed by the same plain operations, so the bits do not depend on
/// where a segment starts or how it is cut into vectors.
template <typename Element, typename Update>
struct SegmentPass {
  [[gnu::always_inline]] void operator()() const {
    Element* __restrict parameter = segment.parameter.data();
    const Element* __restrict gradient = segment.gradient.data();
    Element* __restrict moment0 = moment_data(0);
    Element* __restrict moment1 = moment_data(1);
    Element* __restrict moment2 = moment_data(2);
    const auto count = static_cast<int64_t>(segment.parameter.size());
    const Update pass = update;
    const GradientInput<Element> prepare = input;
    for (int64_t i = 0; i < count; ++i) {
      Element moment[3] = {};
      if constexpr (Update::kMoments > 0) moment[0] = moment0[i];
      if constexpr (Update::kMoments > 1) moment[1] = moment1[i];
      if constexpr (Update::kMoments > 2) moment[2] = moment2[i];
      pass(parameter[i], prepare(gradient[i]), moment);
      if constexpr (Update::kMoments > 0) moment0[i] = moment[0];
      if constexpr (Update::kMoments > 1) moment1[i] = moment[1];
      if constexpr (Update::kMoments > 2) moment2[i] = moment[2];
    }
  }

  [[gnu::always_inline]] Element* moment_data(size_t index) const {
    return index < segment.moments.size() ? segment.moments[index].data() : nullptr;
  }

  const SegmentView<Element>& segment;
  Update update;
  GradientInput<Element> input;
};

/// One step's arguments, on the way to the optimizer's own form.
template <typename Element>
struct Step {
  SimdLevel level;
  const OptimizerSpec& spec;
  int64_t number;
  GradientInput<Element> input;
  const SegmentView<Element>& segment;

  template <typename Update>
  void run() const {
    SegmentPass<Element, Update> pass{segment, Update(spec, number, segment.settings), input};
    run_at(level, pass);
  }

  void run_sgd() const {
    if (spec.momentum == 0) return run<Sgd<Element, SgdForm::kPlain>>();
    if (spec.nesterov) return run<Sgd<Element, SgdForm::kNesterov>>();
    run<Sgd<Element, SgdForm::kMomentum>>();
  }

  template <Decay kDecay>
  void run_adam() const {
    if (spec.amsgrad) return run<Adam<Element, kDecay, Denominator::kMaximum>>();
    run<Adam<Element, kDecay, Denominator::kCurrent>>();
  }

  template <Centring kCentring>
  void run_rmsprop() const {
    if (spec.momentum > 0) return run<Rmsprop<Element, MomentumUse::kUsed, kCentring>>();
    run<Rmsprop<Element, MomentumUse::kNone, kCentring>>();
  }

  void run_kind() const {
    switch (spec.kind) {
      case OptimizerSpec::Kind::kSgd:
        return run_sgd();
      case OptimizerSpec::Kind::kAdam:
        return run_adam<Decay::kInGradient>();
      case OptimizerSpec::Kind::kAdamW:
        return run_adam<Decay::kDecoupled>();
      case OptimizerSpec::Kind::kRmsprop:
        return spec.centered ? run_rmsprop<Centring::kCentred>() : run_rmsprop<Centring::kNone>();
      case OptimizerSpec::Kind::kAdagrad:
        return run<Adagrad<Element>>();
    }
  }
};

}  // namespace

template <typename Element>
void apply_at(SimdLevel level, const OptimizerSpec& spec, int64_t step, double gradient_scale,
              std::optional<double> clip_value, const SegmentView<Element>& segment) {
  Step<Element>{level, spec, step, GradientInput<Element>(gradient_scale, clip_value), segment}.run_kind();
}

template void apply_at(SimdLevel, const OptimizerSpec&, int64_t, double, std::optional<double>,
                       const SegmentView<float>&);
template void apply_at(SimdLevel, const OptimizerSpec&, int64_t, double, std::optional<double>,
                       const SegmentView<double>&);

}  // namespace tutti::train
