// The `data:` block: data sets, opened and compared.
#ifndef TUTTI_LAUNCH_JOB_DATA_H
#define TUTTI_LAUNCH_JOB_DATA_H

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "launch/job.h"
#include "launch/job_faults.h"
#include "launch/job_node.h"

namespace tutti::launch {

/// Data sets by name. `inputs` and `target` are left to the models. `train` is null where opening failed (a fault).
using JobData = std::map<std::string, train::ModelData>;

/// Reads the block and opens all shards; relative paths start at `folder`. Requires that validation and test shards
/// have the fields of the training shards. Warns of shards that stand in two places.
JobData read_data(const Node& block, const std::filesystem::path& folder, const DataOpener& open, Faults& faults,
                  std::vector<std::string>& warnings);

/// Warns, once for each data set, of a `window` that holds less than what shuffled rows are drawn from at a time, and
/// names the value that holds it.
void warn_of_small_windows(const std::vector<train::ModelSpec>& models, std::vector<std::string>& warnings);

}  // namespace tutti::launch

#endif
