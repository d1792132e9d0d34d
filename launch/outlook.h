// What training a job will take, before anything runs: time, memory, messages, disk.
#ifndef TUTTI_LAUNCH_OUTLOOK_H
#define TUTTI_LAUNCH_OUTLOOK_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/calibration.h"
#include "launch/job.h"
#include "partition/plan.h"

namespace tutti::launch {

/// Where times and bytes come from.
enum class Costs {
  kPredicted,  ///< from operation and byte counts
  kMeasured,   ///< one trial step and evaluation batch for each kind of model
};

/// One model's share. All bytes and seconds are estimates.
struct ModelOutlook {
  int64_t row_count = 0;  ///< trained on per epoch
  int64_t epoch_count = 0;
  int64_t step_count = 0;
  int64_t parameter_count = 0;
  std::vector<int64_t> member_bytes;  ///< by position in the team, without the lanes' regions
  int64_t region_bytes = 0;           ///< what a lane needs while it works for the model
  int64_t exchanged_bytes = 0;        ///< sent per step, by all members together
  int64_t disk_bytes = 0;             ///< at most: checkpoints, one being written, final weights, metrics
  std::vector<std::string> islands;   ///< operators that run in autograd islands
};

struct Outlook {
  partition::Plan plan;
  std::vector<ModelOutlook> models;  ///< in the order of the job
  Costs costs = Costs::kPredicted;

  int64_t disk_bytes() const;
};

/// Compiles all models, predicts (or measures) their costs and places them. With Costs::kPredicted nothing of the size
/// of a model is allocated; with kMeasured the process must compute as a lane. Throws UsageError, with the numbers,
/// when a model cannot fit, and what a trial throws.
Outlook look_ahead(const Job& job, const partition::Cluster& cluster, const partition::Machine& machine, Costs costs);

nlohmann::json to_json(const Outlook& outlook);
std::string to_table(const Outlook& outlook);

}  // namespace tutti::launch

#endif
