#include "launch/run_summary.h"

#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <string>

#include "launch/command.h"
#include "launch/cpu_level.h"
#include "launch/version.h"

namespace tutti::launch {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

/// Bytes read from shards by all ranks, by data set.
nlohmann::json sum_of_bytes_read(const nlohmann::json& ranks) {
  std::map<std::string, int64_t> sums;
  for (const auto& rank : ranks) {
    for (const auto& [name, bytes] : rank.at("data_bytes_read").items()) sums[name] += bytes.get<int64_t>();
  }
  return sums;
}

}  // namespace

nlohmann::json bytes_read(const Job& job) {
  nlohmann::json bytes = nlohmann::json::object();
  for (const train::ModelSpec& model : job.models) bytes[model.data.name] = model.data.train->read_bytes();
  return bytes;
}

nlohmann::json run_summary(const SummaryInput& input) {
  return {{"format", 1},
          {"job_file", input.job.file.string()},
          {"job_hash", fmt::format("{:016x}", input.job.hash)},
          {"finished_at", utc_now()},
          {"seconds", input.seconds},
          {"versions", version_info()},
          {"cpu_level", environment("ATEN_CPU_CAPABILITY")},
          {"slurm", {{"job", environment("SLURM_JOB_ID")}, {"restarts", environment("SLURM_RESTART_COUNT")}}},
          {"reduction", input.job.run.reduction == RunSpec::Reduction::kExact ? "exact" : "fast"},
          {"data_bytes_read", sum_of_bytes_read(input.ranks)},
          {"plan", partition::to_json(input.plan)},
          {"ranks", input.ranks},
          {"models", input.reports}};
}

int exit_code_of(const nlohmann::json& reports) {
  std::set<std::string> states;
  for (const auto& report : reports) states.insert(report.at("state").get<std::string>());
  if (states.contains("checkpointed") || states.contains("running")) return kRequeue;
  return states.contains("failed") || states.contains("paused") ? kSomeModelsFailed : kDone;
}

}  // namespace tutti::launch
