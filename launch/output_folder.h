// The output folder of a job: made, locked against a second job, and compared with the job on resume.
#ifndef TUTTI_LAUNCH_OUTPUT_FOLDER_H
#define TUTTI_LAUNCH_OUTPUT_FOLDER_H

#include <chrono>
#include <filesystem>
#include <optional>

#include "launch/job.h"
#include "launch/lock_keeper.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

using train::replace_file;

/// Held by rank 0 while the job runs.
class OutputFolder {
 public:
  static constexpr std::chrono::seconds kHeartbeat{10};

  /// Makes job.run.out and takes its lock. Throws UsageError when another run holds it, when it holds something else
  /// than output, when it has output and job.run.resume is not set, or when a model of the same name there has other
  /// bit-relevant keys (it names them). Leaves a copy of the job there, which load_saved_job reads. Warns of models
  /// there that the job has no longer.
  explicit OutputFolder(const Job& job);

  /// Throws std::runtime_error when the lock was found to be no longer this run's. Never waits for the file system: a
  /// thread of its own touches the lock.
  void check_lock() const { lock_->check(); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path models() const { return path_ / "models"; }

 private:
  void compare_or_record(const Job& job);

  std::filesystem::path path_;
  std::optional<LockKeeper> lock_;  // once the folder is there
};

}  // namespace tutti::launch

#endif
