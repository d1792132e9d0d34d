// The output folder of a job: made, locked against a second job, and compared with the job on resume.
#ifndef TUTTI_LAUNCH_OUTPUT_FOLDER_H
#define TUTTI_LAUNCH_OUTPUT_FOLDER_H

#include <chrono>
#include <filesystem>
#include <string>

#include "launch/job.h"

namespace tutti::launch {

/// Held by rank 0 while the job runs. The lock is a file made with O_EXCL which names host and process and is touched
/// now and then; a lock whose process is gone, or which was not touched for kStaleAfter, is taken over.
class OutputFolder {
 public:
  static constexpr std::chrono::seconds kHeartbeat{10};
  static constexpr std::chrono::seconds kStaleAfter{60};
  static constexpr std::chrono::seconds kPatience{2};  ///< for a run that is just ending

  /// Makes job.run.out and takes its lock. Throws UsageError when another run holds it, when it has output and
  /// job.run.resume is not set, or when a model of the same name there has other bit-relevant keys (it names them).
  /// Leaves a copy of the job there, which load_saved_job reads.
  explicit OutputFolder(const Job& job);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Touches the lock when it is due.
  void heartbeat();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path models() const { return path_ / "models"; }

 private:
  void take_lock();
  void compare_or_record(const Job& job);

  std::filesystem::path path_, lock_;
  std::chrono::steady_clock::time_point last_touch_;
};

/// Writes `text` to `file` as a whole: aside, synced, renamed. Throws std::system_error naming the file.
void replace_file(const std::filesystem::path& file, const std::string& text);

}  // namespace tutti::launch

#endif
