// Loss, metrics, optimizer, schedule and clipping of a model, read from the job file.
#ifndef TUTTI_LAUNCH_JOB_METHODS_H
#define TUTTI_LAUNCH_JOB_METHODS_H

#include <string>
#include <vector>

#include "launch/key_reader.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// Each reads one key of a model block; faults go to `faults`.
program::LossSpec read_loss(const Node& node, const std::string& path, Faults& faults);
train::OptimizerSpec read_optimizer(const Node& node, const std::string& path, Faults& faults);
train::ScheduleSpec read_schedule(const Node& node, const std::string& path, Faults& faults);

/// `loss` among the metrics is always measured, and left out.
std::vector<program::Metric> read_metrics(const KeyReader& model);

train::ClipSpec read_clip(const KeyReader& model, Faults& faults);
std::vector<train::ParameterRule> read_parameter_rules(const KeyReader& model, Faults& faults);

}  // namespace tutti::launch

#endif
