// The losses, optimizers and schedules of the job file, with their keys. Names and defaults are PyTorch's.
#include "launch/key_declarations.h"
#include "launch/key_types.h"

namespace tutti::launch {

using namespace key_types;

namespace {

const std::string kRequiredKey{kRequired};
const std::string kNoDefault{kNone};

Key lr_key(const std::string& default_value) { return {"lr", number(at_least(0)), default_value, "learning rate"}; }

Key decay_key(const std::string& default_value, const std::string& meaning = "L2 penalty, added to the gradient") {
  return {"weight_decay", number(at_least(0)), default_value, meaning};
}

Key eps_key(const std::string& default_value) {
  return {"eps", number(at_least(0)), default_value, "added to the denominator"};
}

Block adam_block(const std::string& name, const std::string& meaning, Key decay) {
  return {name,
          meaning,
          {lr_key("0.001"),
           {"betas", numbers(half_open(0, 1)), "[0.9, 0.999]", "decay rates of the two moments"},
           eps_key("1e-8"),
           std::move(decay),
           {"amsgrad", boolean(), "false", "keep the greatest second moment"}}};
}

/// A schedule's own keys and those that every schedule takes.
Block schedule(const std::string& name, const std::string& meaning, std::vector<Key> keys) {
  if (name != "plateau") {
    keys.push_back({"per", choice({"step", "epoch"}), "step", "what the schedule counts: optimizer steps or epochs"});
  }
  keys.push_back({"warmup_steps", count(0), "0", "optimizer steps of linear warm-up before the schedule"});
  keys.push_back({"warmup_start", number(closed(0, 1)), "0", "factor on the learning rate at the first warm-up step"});
  return {name, meaning, std::move(keys)};
}

Key total_key() {
  return {"total", count(1), kNoDefault, "length in steps or epochs; none = the rest of the training"};
}

Key min_lr_key() { return {"min_lr", number(at_least(0)), "0", "least learning rate"}; }

Key gamma_key(const std::string& default_value) {
  return {"gamma", number(above(0)), default_value, "factor on the learning rate"};
}

Block one_cycle_block() {
  return schedule("one_cycle", "Up to `max_lr`, then far down (torch OneCycleLR).",
                  {{"max_lr", number(above(0)), kNoDefault, "greatest learning rate; none = the optimizer's"},
                   total_key(),
                   {"pct_start", number(closed(0, 1)), "0.3", "part of the cycle in which the learning rate rises"},
                   {"div_factor", number(above(0)), "25", "first learning rate = max_lr / div_factor"},
                   {"final_div_factor", number(above(0)), "1e4", "last learning rate = first / final_div_factor"},
                   {"anneal", choice({"cos", "linear"}), "cos", "shape of rise and fall"},
                   {"three_phase", boolean(), "false", "fall to the first learning rate before the last fall"},
                   {"cycle_momentum", boolean(), "true", "move momentum (Adam: beta1) against the learning rate"},
                   {"base_momentum", number(half_open(0, 1)), "0.85", "least momentum"},
                   {"max_momentum", number(half_open(0, 1)), "0.95", "greatest momentum"}});
}

Block plateau_block() {
  return schedule(
      "plateau", "Reduces the learning rate when the validation loss no longer falls (torch ReduceLROnPlateau).",
      {{"factor", number({0, 1, true, true}), "0.1", "factor on the learning rate"},
       {"patience", count(0), "10", "evaluations without improvement that are waited for"},
       {"threshold", number(at_least(0)), "1e-4", "a smaller change is no improvement"},
       {"threshold_mode", choice({"rel", "abs"}), "rel", "threshold relative to the best value, or absolute"},
       {"cooldown", count(0), "0", "evaluations to wait after a reduction"},
       min_lr_key()});
}

}  // namespace

const std::vector<Block>& loss_blocks() {
  static const std::vector<Block> blocks{
      {"cross_entropy",
       "For one class out of many; takes an integer target.",
       {{"label_smoothing", number(closed(0, 1)), "0", "part of the target spread evenly over all classes"},
        {"class_weights", numbers(at_least(0)), "[]", "one factor per class"},
        {"ignore_index", integer(), "-100", "label of rows that do not count"}}},
      {"mse", "Mean squared error.", {}},
      {"l1", "Mean absolute error.", {}},
      {"huber", "Squared near zero, absolute beyond.", {{"delta", number(above(0)), "1", "where it turns absolute"}}},
      {"bce_with_logits",
       "Binary cross-entropy of logits.",
       {{"positive_weights", numbers(at_least(0)), "[]",
         "factors for positive targets: one for all outputs, or one per output"}}}};
  return blocks;
}

const std::vector<Block>& optimizer_blocks() {
  static const std::vector<Block> blocks{
      {"sgd",
       "Stochastic gradient descent (torch SGD).",
       {lr_key("0.001"),
        {"momentum", number(at_least(0)), "0", "momentum factor"},
        {"dampening", number(), "0", "dampening of the momentum"},
        {"nesterov", boolean(), "false", "Nesterov's momentum; needs momentum > 0 and dampening 0"},
        decay_key("0")}},
      adam_block("adam", "Adam (torch Adam).", decay_key("0")),
      adam_block("adamw", "Adam with decoupled weight decay (torch AdamW).",
                 decay_key("0.01", "part of a parameter subtracted per step, times the learning rate")),
      {"rmsprop",
       "RMSprop (torch RMSprop).",
       {lr_key("0.01"),
        {"alpha", number(closed(0, 1)), "0.99", "smoothing of the squared gradient"},
        eps_key("1e-8"),
        {"momentum", number(at_least(0)), "0", "momentum factor"},
        {"centered", boolean(), "false", "divide by the estimated standard deviation"},
        decay_key("0")}},
      {"adagrad",
       "Adagrad (torch Adagrad).",
       {lr_key("0.01"),
        {"lr_decay", number(at_least(0)), "0", "learning rate is divided by 1 + (step - 1) lr_decay"},
        {"initial_accumulator_value", number(at_least(0)), "0", "first sum of squares"},
        eps_key("1e-10"),
        decay_key("0")}}};
  return blocks;
}

const std::vector<Block>& schedule_blocks() {
  static const std::vector<Block> blocks{
      schedule("constant", "The optimizer's learning rate throughout.", {}),
      schedule("step", "Times `gamma` every `step_size` (torch StepLR).",
               {{"step_size", count(1), kRequiredKey, "steps or epochs between reductions"}, gamma_key("0.1")}),
      schedule(
          "multi_step", "Times `gamma` at each milestone (torch MultiStepLR).",
          {{"milestones", integers(closed(1, 1e9)), kRequiredKey, "rising list of steps or epochs"}, gamma_key("0.1")}),
      schedule("exponential", "Times `gamma` every step or epoch (torch ExponentialLR).", {gamma_key(kRequiredKey)}),
      schedule("polynomial", "lr (1 - t / total)^power (torch PolynomialLR).",
               {{"power", number(at_least(0)), "1", "exponent"}, total_key()}),
      schedule("cosine", "Half a cosine from the learning rate to `min_lr` (torch CosineAnnealingLR).",
               {min_lr_key(), total_key()}),
      schedule("cosine_restarts", "Half cosines with restarts (torch CosineAnnealingWarmRestarts).",
               {{"period", count(1), kRequiredKey, "steps or epochs to the first restart (T_0)"},
                {"period_factor", count(1), "1", "each period is this many times longer (T_mult)"},
                min_lr_key()}),
      one_cycle_block(),
      plateau_block()};
  return blocks;
}

}  // namespace tutti::launch
