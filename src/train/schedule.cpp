// Learning-rate schedules in closed form.
#include "src/train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace tutti::train {
namespace {

double cosine_between(double from, double to, double fraction) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * fraction));
}

double linear_between(double from, double to, double fraction) { return from + (to - from) * fraction; }

double fraction_of(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

double decayed(double base_lr, double gamma, int64_t times) {
  return base_lr * std::pow(gamma, static_cast<double>(times));
}

double polynomial_lr(const ScheduleSpec& spec, double base_lr, int64_t position, int64_t total) {
  return base_lr * std::pow(1 - fraction_of(std::min(position, total), total), spec.power);
}

double restarting_cosine_lr(const ScheduleSpec& spec, double base_lr, int64_t position) {
  int64_t period = std::max<int64_t>(spec.restart_period, 1);
  if (spec.restart_factor <= 1) {
    position %= period;
  } else {
    while (position >= period) {
      position -= period;
      period *= spec.restart_factor;
    }
  }
  return cosine_between(base_lr, spec.min_lr, fraction_of(position, period));
}

/// A part of the one-cycle schedule: from the previous phase's end to `end`, which need not be a whole step.
struct Phase {
  double end;
  double start_lr, end_lr;
  double start_momentum, end_momentum;
};

Rates rates_in(const ScheduleSpec& spec, std::span<const Phase> phases, double position) {
  double start = 0;
  size_t i = 0;
  while (i + 1 < phases.size() && position > phases[i].end) start = phases[i++].end;
  const Phase& phase = phases[i];
  const double fraction = phase.end > start ? (position - start) / (phase.end - start) : 1;
  const auto between = spec.cosine_anneal ? cosine_between : linear_between;
  Rates rates{between(phase.start_lr, phase.end_lr, fraction), {}};
  if (spec.cycle_momentum) rates.momentum = between(phase.start_momentum, phase.end_momentum, fraction);
  return rates;
}

/// Smith and Topin 2017, arXiv 1708.07120, as torch.optim.lr_scheduler.OneCycleLR has it.
Rates one_cycle(const ScheduleSpec& spec, double base_lr, int64_t position, int64_t total) {
  const double high = spec.max_lr > 0 ? spec.max_lr : base_lr;
  const double initial = high / spec.div_factor;
  const double low = initial / spec.final_div_factor;
  const double slow = spec.max_momentum;
  const double fast = spec.base_momentum;
  const double rising_end = spec.pct_start * static_cast<double>(total) - 1;
  const auto last = static_cast<double>(total - 1);
  const double at = std::min(static_cast<double>(position), last);
  if (spec.three_phase) {
    const std::array<Phase, 3> phases = {{{rising_end, initial, high, slow, fast},
                                          {2 * rising_end, high, initial, fast, slow},
                                          {last, initial, low, slow, slow}}};
    return rates_in(spec, phases, at);
  }
  const std::array<Phase, 2> phases = {{{rising_end, initial, high, slow, fast}, {last, high, low, fast, slow}}};
  return rates_in(spec, phases, at);
}

/// The schedule without its warm-up at its own position, 0 for the first.
Rates scheduled(const ScheduleSpec& spec, double base_lr, int64_t position, int64_t total,
                std::optional<double> plateau_lr) {
  using Kind = ScheduleSpec::Kind;
  switch (spec.kind) {
    case Kind::kConstant:
      return {base_lr, {}};
    case Kind::kStep:
      return {decayed(base_lr, spec.gamma, position / std::max<int64_t>(spec.step_size, 1)), {}};
    case Kind::kMultiStep:
      return {decayed(base_lr, spec.gamma,
                      std::ranges::count_if(spec.milestones, [&](int64_t milestone) { return milestone <= position; })),
              {}};
    case Kind::kExponential:
      return {decayed(base_lr, spec.gamma, position), {}};
    case Kind::kPolynomial:
      return {polynomial_lr(spec, base_lr, position, total), {}};
    case Kind::kCosine:
      return {cosine_between(base_lr, spec.min_lr, fraction_of(position, total)), {}};
    case Kind::kCosineRestarts:
      return {restarting_cosine_lr(spec, base_lr, position), {}};
    case Kind::kOneCycle:
      return one_cycle(spec, base_lr, position, total);
    case Kind::kPlateau:
      return {plateau_lr.value_or(base_lr), {}};
  }
  return {base_lr, {}};
}

}  // namespace

Rates rates_at(const ScheduleSpec& spec, double base_lr, int64_t step, int64_t epoch, int64_t total_steps,
               int64_t total_epochs, std::optional<double> plateau_lr) {
  const int64_t position = spec.per_epoch ? epoch : std::max<int64_t>(step - spec.warmup_steps, 0);
  const int64_t whole_training = spec.per_epoch ? total_epochs : total_steps - spec.warmup_steps;
  const int64_t total = std::max<int64_t>(spec.total > 0 ? spec.total : whole_training, 1);
  Rates rates = scheduled(spec, base_lr, position, total, plateau_lr);
  if (step < spec.warmup_steps) {
    rates.lr *= linear_between(spec.warmup_start, 1, fraction_of(step, spec.warmup_steps));
  }
  return rates;
}

namespace {

bool is_better(const ScheduleSpec& spec, double value, std::optional<double> best) {
  if (!best) return std::isfinite(value);
  const double sign = spec.greater_is_better ? 1 : -1;
  const double bound = spec.threshold_relative ? *best * (1 + sign * spec.threshold) : *best + sign * spec.threshold;
  return spec.greater_is_better ? value > bound : value < bound;
}

}  // namespace

void PlateauState::observe(const ScheduleSpec& spec, double base_lr, double value) {
  constexpr double kLeastChange = 1e-8;  // a smaller reduction is not applied
  if (!lr) lr = base_lr;
  if (is_better(spec, value, best)) {
    best = value;
    bad_count = 0;
  } else {
    ++bad_count;
  }
  if (cooldown_left > 0) {
    --cooldown_left;
    bad_count = 0;
  }
  if (bad_count <= spec.patience) return;
  const double reduced = std::max(*lr * spec.factor, spec.min_lr);
  if (*lr - reduced > kLeastChange) lr = reduced;
  cooldown_left = spec.cooldown;
  bad_count = 0;
}

}  // namespace tutti::train
