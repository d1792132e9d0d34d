// metrics.jsonl: one JSON object a line, cut back to a checkpoint's length on resume.
#ifndef TUTTI_SRC_TRAIN_METRICS_LOG_H
#define TUTTI_SRC_TRAIN_METRICS_LOG_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "src/train/posix_file.h"

namespace tutti::train {

/// Appends lines. A full disk does not end a training: lines that cannot be written stay in memory and are tried again
/// with the next one.
class MetricsLog {
 public:
  /// Opens `file` (made if absent) and cuts it to `keep_bytes`; warns where it is shorter, since lines are then lost.
  /// Throws std::system_error naming the file.
  MetricsLog(const std::filesystem::path& file, int64_t keep_bytes);
  ~MetricsLog();

  void write(const nlohmann::json& line);

  /// Makes everything written so far durable. Writes all of it again where somebody has removed or replaced the
  /// file since, and warns. Throws std::system_error when that is not possible.
  void sync();

  /// Length of the file once all lines are written.
  int64_t size_bytes() const { return written_bytes_ + static_cast<int64_t>(unwritten_.size()); }

 private:
  void write_out();
  void put_back();
  void write_what_fits() noexcept;

  PosixFile file_;
  int64_t written_bytes_ = 0;
  std::string unwritten_;
};

}  // namespace tutti::train

#endif
