// The job: what a job file says, checked, with sweeps expanded.
#ifndef TUTTI_LAUNCH_JOB_H
#define TUTTI_LAUNCH_JOB_H

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/data_set.h"
#include "launch/command.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// All faults found in a job file, each as "FILE:LINE: what was expected, what was found, what to do".
class JobError : public UsageError {
 public:
  explicit JobError(std::vector<std::string> faults);
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  std::vector<std::string> faults_;
};

/// The `run:` block. None of it changes a model's bits, but `reduction`.
struct RunSpec {
  enum class Reduction { kExact, kFast };
  std::filesystem::path out;
  int64_t lanes = 0;               ///< 0 = auto: the CPUs this rank may use / local ranks
  int64_t memory_bytes = 0;        ///< per rank; 0 = auto: cgroup or Slurm limit / local ranks
  double deadline_seconds = 60;    ///< after which a silent rank is named and the job ended
  double visit_milliseconds = 50;  ///< how long a lane stays with one model
  Reduction reduction = Reduction::kExact;
  std::filesystem::path trace;  ///< a Chrome trace; empty = none
  bool resume = false;          ///< --resume
  double progress_seconds = 1;  ///< between refreshes of the live table
  bool measure_memory = false;  ///< sample memory every 5 ms, for the figures in summary.json
};

struct Job {
  std::filesystem::path file;
  std::filesystem::path folder;       ///< where relative paths of data start
  std::vector<std::string> settings;  ///< the --set options it was loaded with
  RunSpec run;
  std::vector<train::ModelSpec> models;  ///< in the order of the file, sweeps expanded
  uint64_t hash = 0;                     ///< of all models' names and sources
  std::vector<std::string> warnings;     ///< what is allowed but likely not meant; each a line
};

/// What the command line adds to a job file.
struct JobOptions {
  std::vector<std::string> settings;  ///< --set KEY=VALUE, KEY like "models.0.epochs", "models.NAME.batch", "run.out"
  std::optional<std::filesystem::path> out;
  bool resume = false;
  std::optional<std::filesystem::path> folder = {};  ///< where relative paths start; default: the job file's folder
};

/// Opens a data set: data::DataSet::open, or a test's own.
using DataOpener = std::function<std::shared_ptr<const data::DataSet>(const std::vector<std::string>& paths_or_globs,
                                                                      const data::ReadOptions& options)>;

/// Reads a job file, and opens its data sets. Throws JobError with every fault it finds (the first 20).
Job load_job(const std::filesystem::path& file, const JobOptions& options,
             const DataOpener& open = data::DataSet::open);

/// The text of docs/job-file.md, made from the declarations of the keys.
std::string job_file_documentation();

}  // namespace tutti::launch

#endif
