#include "launch/plan.h"

#include <fmt/format.h>

#include <optional>

#include "launch/calibration.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/counted.h"
#include "launch/job.h"
#include "launch/job_node.h"
#include "launch/lane_count.h"
#include "launch/lane_thread.h"
#include "launch/memory_limit.h"
#include "launch/outlook.h"

namespace tutti::launch {

namespace {

constexpr const char* kHelp = R"(Usage: tutti plan JOB.yaml [options]

Who would train what where, and what it takes: time, memory per rank, messages, disk. Nothing is
trained and no model is allocated; all numbers are estimates. Lanes and memory are those of the job
or, where it says `auto`, of this machine with all ranks on it.

{}
Example: tutti plan examples/digits.yaml --ranks 2 --measure
)";

CommandForm form() {
  using enum OptionKind;
  return {"plan",
          "job",
          "a job file",
          kHelp,
          {{"job", kText, "the job file"},
           {"ranks", kNumber, "the number of ranks (default: 1)"},
           {"lanes", kNumber, "lanes of each rank, instead of run.lanes"},
           {"memory", kText, "memory of each rank, such as 8GiB, instead of run.memory"},
           {"measure", kFlag, "run a trial step of every kind of model, for better numbers"},
           {"calibration", kText, "speeds and links from this file (tutti calibrate --out)"},
           {"set", kTexts, "change a key, as in tutti train (may be repeated)"},
           {"json", kFlag, "print JSON"}}};
}

int64_t memory_of(const CommandLine& line, const Job& job, int64_t rank_count) {
  if (!line.has("memory")) return job.run.memory_bytes > 0 ? job.run.memory_bytes : automatic_memory_bytes(rank_count);
  const std::optional<int64_t> bytes = bytes_of(Node::scalar(line.text("memory"), {}));
  if (!bytes || *bytes <= 0) {
    line.refuse(fmt::format("--memory: expected a size such as 8GiB, found `{}`", line.text("memory")));
  }
  return *bytes;
}

partition::Cluster cluster_of(const CommandLine& line, const Job& job, const std::optional<Calibration>& calibration) {
  const int64_t rank_count = line.integer("ranks", 1, /*least=*/1);
  const std::vector<CpuShare> shares(static_cast<size_t>(rank_count), own_cpu_share());
  const int64_t lane_count = choose_lanes(shares, 0, line.integer("lanes", job.run.lanes, /*least=*/1)).lane_count;
  const int64_t memory_bytes = memory_of(line, job, rank_count);
  partition::Cluster cluster;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    cluster.ranks.push_back({calibration ? calibration->speed(rank) : 1.0, lane_count, memory_bytes});
  }
  if (calibration) cluster.link = calibration->link();
  return cluster;
}

}  // namespace

int plan_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  JobOptions options;
  options.settings = line.texts("set");
  options.out = ".";  // a plan writes nothing, so `run: out` may be absent
  const Costs costs = line.has("measure") ? Costs::kMeasured : Costs::kPredicted;
  compute_as_lane();
  const Job job = load_job(line.text("job"), options);
  std::optional<Calibration> calibration;
  if (line.has("calibration")) calibration = read_calibration(line.text("calibration"));
  const partition::Cluster cluster = cluster_of(line, job, calibration);
  const Outlook outlook = look_ahead(job, cluster, calibration ? calibration->machine() : partition::Machine{}, costs);
  if (line.has("json")) {
    fmt::print("{}\n", to_json(outlook).dump(1));
    return kDone;
  }
  for (const std::string& warning : job.warnings) fmt::print("warning: {}\n", warning);
  fmt::print("{} on {} of {}, {:.1f} GiB each\n{}", counted(job.models.size(), "model"),
             counted(cluster.ranks.size(), "rank"), counted(cluster.ranks.front().lane_count, "lane"),
             static_cast<double>(cluster.ranks.front().memory_bytes) / (int64_t{1} << 30), to_table(outlook));
  return kDone;
}

}  // namespace tutti::launch
