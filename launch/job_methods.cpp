// Loss, metrics, optimizer, schedule and clipping of a model, read from the job file.
#include "launch/job_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tutti::launch {
namespace {

/// Reads keys into fields, where the block declares them: optimizers and schedules share some.
struct FieldReader {
  const KeyReader& reader;

  void read(std::string_view key, double& field) const {
    if (reader.declares(key)) field = reader.number(key);
  }
  void read(std::string_view key, int64_t& field) const {
    if (reader.declares(key)) field = reader.integer(key);
  }
  void read(std::string_view key, bool& field) const {
    if (reader.declares(key)) field = reader.boolean(key);
  }
};

void read_one_cycle(const KeyReader& reader, train::ScheduleSpec& spec) {
  const FieldReader fields{reader};
  fields.read("pct_start", spec.pct_start);
  fields.read("div_factor", spec.div_factor);
  fields.read("final_div_factor", spec.final_div_factor);
  fields.read("base_momentum", spec.base_momentum);
  fields.read("max_momentum", spec.max_momentum);
  fields.read("cycle_momentum", spec.cycle_momentum);
  fields.read("three_phase", spec.three_phase);
  spec.max_lr = reader.optional_number("max_lr").value_or(0);
  spec.cosine_anneal = reader.text("anneal") == "cos";
  if (spec.base_momentum > spec.max_momentum) reader.fault("base_momentum", "expected at most max_momentum");
}

void read_milestones(const KeyReader& reader, train::ScheduleSpec& spec) {
  spec.milestones = reader.integers("milestones");
  if (std::ranges::adjacent_find(spec.milestones, std::greater_equal{}) != spec.milestones.end()) {
    reader.fault("milestones", "expected each milestone to be greater than the one before");
  }
}

}  // namespace

program::LossSpec read_loss(const Node& node, const std::string& path, Faults& faults) {
  using Kind = program::LossSpec::Kind;
  constexpr std::array kKinds{Kind::kCrossEntropy, Kind::kMse, Kind::kL1, Kind::kHuber, Kind::kBceWithLogits};
  program::LossSpec spec;
  const auto method = read_method(node, path, loss_blocks(), "loss", faults);
  if (!method) return spec;
  const KeyReader reader(*method->block, method->keys, method->path, faults);
  const FieldReader fields{reader};
  spec.kind = kKinds.at(method->index);
  fields.read("label_smoothing", spec.label_smoothing);
  fields.read("ignore_index", spec.ignore_index);
  fields.read("delta", spec.delta);
  if (reader.declares("class_weights")) spec.class_weights = reader.numbers("class_weights");
  if (reader.declares("positive_weights")) spec.positive_weights = reader.numbers("positive_weights");
  return spec;
}

train::OptimizerSpec read_optimizer(const Node& node, const std::string& path, Faults& faults) {
  using Kind = train::OptimizerSpec::Kind;
  constexpr std::array kKinds{Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kRmsprop, Kind::kAdagrad};
  train::OptimizerSpec spec;
  const auto method = read_method(node, path, optimizer_blocks(), "optimizer", faults);
  if (!method) return spec;
  const KeyReader reader(*method->block, method->keys, method->path, faults);
  const FieldReader fields{reader};
  spec.kind = kKinds.at(method->index);
  fields.read("lr", spec.lr);
  fields.read("weight_decay", spec.weight_decay);
  fields.read("momentum", spec.momentum);
  fields.read("dampening", spec.dampening);
  fields.read("nesterov", spec.nesterov);
  fields.read("eps", spec.eps);
  fields.read("amsgrad", spec.amsgrad);
  fields.read("alpha", spec.alpha);
  fields.read("centered", spec.centered);
  fields.read("lr_decay", spec.lr_decay);
  fields.read("initial_accumulator_value", spec.initial_accumulator_value);
  if (reader.declares("betas")) {
    const std::vector<double> betas = reader.numbers("betas");
    if (betas.size() == 2) {
      spec.beta1 = betas[0];
      spec.beta2 = betas[1];
    } else {
      reader.fault("betas", fmt::format("expected two numbers, found {}", betas.size()));
    }
  }
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0)) {
    reader.fault("nesterov",
                 fmt::format("expected momentum greater than 0 and dampening 0 with nesterov, found {} and {}",
                             spec.momentum, spec.dampening));
  }
  return spec;
}

train::ScheduleSpec read_schedule(const Node& node, const std::string& path, Faults& faults) {
  using Kind = train::ScheduleSpec::Kind;
  constexpr std::array kKinds{Kind::kConstant,       Kind::kStep,       Kind::kMultiStep,
                              Kind::kExponential,    Kind::kPolynomial, Kind::kCosine,
                              Kind::kCosineRestarts, Kind::kOneCycle,   Kind::kPlateau};
  train::ScheduleSpec spec;
  const auto method = read_method(node, path, schedule_blocks(), "schedule", faults);
  if (!method) return spec;
  const KeyReader reader(*method->block, method->keys, method->path, faults);
  const FieldReader fields{reader};
  spec.kind = kKinds.at(method->index);
  fields.read("warmup_steps", spec.warmup_steps);
  fields.read("warmup_start", spec.warmup_start);
  fields.read("step_size", spec.step_size);
  fields.read("gamma", spec.gamma);
  fields.read("power", spec.power);
  fields.read("min_lr", spec.min_lr);
  fields.read("period", spec.restart_period);
  fields.read("period_factor", spec.restart_factor);
  fields.read("factor", spec.factor);
  fields.read("patience", spec.patience);
  fields.read("cooldown", spec.cooldown);
  fields.read("threshold", spec.threshold);
  if (reader.declares("per")) spec.per_epoch = reader.text("per") == "epoch";
  if (reader.declares("total")) spec.total = reader.optional_integer("total").value_or(0);
  if (reader.declares("threshold_mode")) spec.threshold_relative = reader.text("threshold_mode") == "rel";
  if (spec.kind == Kind::kMultiStep) read_milestones(reader, spec);
  if (spec.kind == Kind::kOneCycle) read_one_cycle(reader, spec);
  return spec;
}

std::vector<program::Metric> read_metrics(const KeyReader& model) {
  std::vector<program::Metric> metrics;
  for (const std::string& name : model.texts("metrics")) {
    if (name == "loss") continue;
    try {
      const program::Metric metric = program::metric_named(name);
      if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
    } catch (const std::invalid_argument& error) {
      model.fault("metrics", error.what());
    }
  }
  return metrics;
}

train::ClipSpec read_clip(const KeyReader& model, Faults& faults) {
  train::ClipSpec clip;
  if (const Node* node = model.node("clip")) {
    const KeyReader reader(clip_block(), *node, model.path_of("clip"), faults);
    clip.norm = reader.optional_number("norm");
    clip.value = reader.optional_number("value");
    if (!reader.has("norm") && !reader.has("value"))
      model.fault("clip", "expected `norm`, `value` or both, found neither");
  }
  return clip;
}

std::vector<train::ParameterRule> read_parameter_rules(const KeyReader& model, Faults& faults) {
  std::vector<train::ParameterRule> rules;
  const Node* list = model.node("parameters");
  if (list == nullptr) return rules;
  if (list->kind != Node::Kind::kList) {
    model.fault("parameters", fmt::format("expected a list of {{match: ..., ...}}, found {}", describe(*list)));
    return rules;
  }
  for (const Node& item : list->children) {
    const KeyReader reader(parameter_block(), item, fmt::format("{}.{}", model.path_of("parameters"), rules.size()),
                           faults);
    rules.push_back({reader.text("match"), reader.boolean("frozen"), reader.optional_number("lr_factor"),
                     reader.optional_number("weight_decay")});
  }
  return rules;
}

}  // namespace tutti::launch
