// A training job on one rank, from the job file to the summary.
#ifndef TUTTI_LAUNCH_TRAIN_JOB_H
#define TUTTI_LAUNCH_TRAIN_JOB_H

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/collectives.h"
#include "comm/exchange_queue.h"
#include "comm/mpi_communicator.h"
#include "comm/mpi_session.h"
#include "launch/job.h"
#include "launch/lane_count.h"
#include "launch/live_table.h"
#include "launch/memory_sampler.h"
#include "launch/output_folder.h"
#include "launch/output_thread.h"
#include "launch/rank_watch.h"
#include "launch/report_exchange.h"
#include "partition/placement.h"
#include "src/train/crash_log.h"
#include "src/train/lanes.h"
#include "src/train/trace.h"
#include "src/train/unified_network.h"

namespace tutti::launch {

/// What the command line of `tutti train` says.
struct TrainOptions {
  std::filesystem::path job_file;
  JobOptions job;
  std::optional<std::filesystem::path> trace;
};

/// Runs a job, in the order of its member functions. Constructed by the communication thread, which stays in run()
/// until the job ends: it moves the exchanges on, watches the other ranks, passes signals on and draws the table, while
/// lanes train.
class TrainJob {
 public:
  TrainJob(const comm::MpiSession& session, comm::MpiCommunicator& world, RankWatch& watch, train::CrashLog& crash_log,
           OutputThread& output, TrainOptions options);
  ~TrainJob();

  /// Collective. Returns the exit code, the same on all ranks. Throws UsageError on all ranks alike; anything else
  /// means that the job must be aborted.
  int run();

 private:
  void agree_on_machine();
  void read_job();
  void agree_on_job();
  void open_output();
  void choose_checkpoints();
  void place();
  void build();
  std::optional<int64_t> resumed_step(size_t model) const;
  std::optional<train::Rest> rest_of(size_t model) const;
  void check_open_files() const;
  void check_memory() const;
  void train();
  int conclude();

  nlohmann::json own_reports() const;
  nlohmann::json own_figures() const;
  comm::LaneProgress lane_progress() const;
  std::string awaited() const;
  void print_headline() const;
  bool write_summary(const nlohmann::json& reports, const nlohmann::json& ranks);
  void write_trace();
  train::Reduction reduction() const;
  bool is_root() const { return world_.rank() == 0; }

  const comm::MpiSession& session_;
  comm::MpiCommunicator& world_;
  RankWatch& watch_;
  train::CrashLog& crash_log_;
  OutputThread& shown_;
  TrainOptions options_;
  Job job_;
  std::vector<CpuShare> shares_;  // by rank
  LaneChoice lanes_choice_;
  std::optional<OutputFolder> output_;  // rank 0
  std::map<std::string, int64_t> resume_steps_;
  std::set<std::string> finished_;               // by an earlier run
  std::map<std::string, int64_t> crash_counts_;  // of models that crashed the process before
  partition::Plan plan_;
  comm::ExchangeQueue queue_;
  std::atomic<bool> stop_ = false;
  std::optional<train::Trace> trace_;
  std::vector<train::Member> members_;
  train::Programs programs_;
  std::optional<train::UnifiedNetwork> network_;
  std::vector<train::ModelRun*> runs_;
  std::optional<MemorySampler> sampler_;
  std::optional<train::Lanes> lanes_;  // ends its threads before what they use is destroyed
  std::optional<LiveTable> table_;     // rank 0
  std::optional<ReportExchange> reports_;
  std::chrono::steady_clock::time_point started_, trained_from_;
  int64_t memory_bytes_ = 0;  // this rank's limit
  int64_t warm_bytes_ = 0;
};

}  // namespace tutti::launch

#endif
