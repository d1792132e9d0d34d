// summary.json: what a job did, for people and scripts.
#ifndef TUTTI_LAUNCH_RUN_SUMMARY_H
#define TUTTI_LAUNCH_RUN_SUMMARY_H

#include <nlohmann/json.hpp>

#include "launch/job.h"
#include "partition/placement.h"

namespace tutti::launch {

/// What a summary is made of.
struct SummaryInput {
  const Job& job;
  const partition::Plan& plan;
  const nlohmann::json& reports;  ///< of all models
  const nlohmann::json& ranks;    ///< figures of all ranks
  double seconds = 0;             ///< of the whole job so far
};

/// {data set: bytes of its training shards that this process has read}, for its figures under "data_bytes_read".
nlohmann::json bytes_read(const Job& job);

/// The summary. Its data_bytes_read are the sums over the ranks' figures.
nlohmann::json run_summary(const SummaryInput& input);

/// The job's exit code from its models' states.
int exit_code_of(const nlohmann::json& reports);

}  // namespace tutti::launch

#endif
