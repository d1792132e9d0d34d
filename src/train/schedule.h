// Learning-rate schedules: PyTorch's, as pure functions of the step.
#ifndef TUTTI_SRC_TRAIN_SCHEDULE_H
#define TUTTI_SRC_TRAIN_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti::train {

/// A schedule and its settings. Counts optimizer steps, or epochs with `per_epoch`.
struct ScheduleSpec {
  enum class Kind {
    kConstant,
    kStep,
    kMultiStep,
    kExponential,
    kPolynomial,
    kCosine,
    kCosineRestarts,
    kOneCycle,
    kPlateau
  };
  Kind kind = Kind::kConstant;
  bool per_epoch = false;
  int64_t warmup_steps = 0;              ///< before any schedule: lr rises linearly; see rates_at
  double warmup_start = 0;               ///< factor at step 0; torch's LinearLR start_factor
  int64_t step_size = 1;                 ///< step
  std::vector<int64_t> milestones = {};  ///< multi-step
  double gamma = 0.1;                    ///< step, multi-step, exponential
  double power = 1;                      ///< polynomial
  int64_t total = 0;                     ///< polynomial, cosine (T_max), one-cycle: its length; 0 = the whole training
  double min_lr = 0;                     ///< cosine (eta_min), plateau
  int64_t restart_period = 1;            ///< cosine restarts (T_0)
  int64_t restart_factor = 1;            ///< cosine restarts (T_mult)
  double max_lr = 0;                     ///< one-cycle; 0 = the optimizer's lr
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;        ///< one-cycle
  double base_momentum = 0.85, max_momentum = 0.95;                       ///< one-cycle
  bool cycle_momentum = true, three_phase = false, cosine_anneal = true;  ///< one-cycle
  double factor = 0.1;                                                    ///< plateau
  int64_t patience = 10, cooldown = 0;                                    ///< plateau
  double threshold = 1e-4;                                                ///< plateau
  bool threshold_relative = true, greater_is_better = false;              ///< plateau
};

/// What a schedule says for one step.
struct Rates {
  double lr = 0;
  std::optional<double> momentum;  ///< set by one-cycle only
};

/// The rates for optimizer step `step` (0 for the first) in epoch `epoch`, of a training of `total_steps` steps and
/// `total_epochs` epochs; closed form, so that a resumed run needs no state. `plateau_lr` is PlateauState's rate, after
/// its first observation.
///
/// Warm-up: in steps 0 to warmup_steps - 1 the rate rises linearly from warmup_start times to once the schedule's first
/// rate (one-cycle: its lowest). Then the schedule counts from 0, and "the whole training" is what is left: PyTorch's
/// SequentialLR of LinearLR and the schedule. A schedule `per_epoch` counts epochs of the training, warm-up or not; the
/// warm-up's factor is applied to its rate. One-cycle holds its last rate after its end; cosine rises again, as
/// CosineAnnealingLR does.
Rates rates_at(const ScheduleSpec& spec, double base_lr, int64_t step, int64_t epoch, int64_t total_steps,
               int64_t total_epochs, std::optional<double> plateau_lr = {});

/// The state of reduce-on-plateau (torch.optim.lr_scheduler.ReduceLROnPlateau), saved in checkpoints. A value that is
/// not finite never counts as an improvement.
struct PlateauState {
  std::optional<double> best;
  int64_t bad_count = 0;
  int64_t cooldown_left = 0;
  std::optional<double> lr;  ///< current rate after reductions; none before the first observation

  /// Observes one validation value and updates the state.
  void observe(const ScheduleSpec& spec, double base_lr, double value);
};

}  // namespace tutti::train

#endif
