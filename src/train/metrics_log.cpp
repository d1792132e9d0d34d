#include "src/train/metrics_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>
#include <system_error>

namespace tutti::train {

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t keep_bytes)
    : file_(PosixFile::open_or_create(file)), name_(file.string()) {
  const int64_t size_bytes = file_.size_bytes();
  if (size_bytes < keep_bytes) {
    spdlog::warn(
        "{}: expected the {} bytes that the checkpoint speaks of, found {}; its lines before the checkpoint are "
        "lost in part, the training goes on with the same bits",
        file.string(), keep_bytes, size_bytes);
  }
  written_bytes_ = std::min(keep_bytes, size_bytes);
  file_.resize(written_bytes_);
}

MetricsLog::~MetricsLog() { write_what_fits(); }

void MetricsLog::write(const nlohmann::json& line) {
  unwritten_ += line.dump() + '\n';
  write_what_fits();
}

void MetricsLog::write_out() {
  file_.write_at(written_bytes_, std::as_bytes(std::span(unwritten_)));
  written_bytes_ += std::ssize(unwritten_);
  unwritten_.clear();
}

void MetricsLog::write_what_fits() noexcept {
  try {
    write_out();
  } catch (const std::system_error&) {
    // The lines stay in memory: the next one, or sync(), tries again from the same place.
  }
}

void MetricsLog::sync() {
  if (!file_.is_linked()) {
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            name_ +
                                ": expected the file that this run writes, found that it was removed or replaced; "
                                "leave the output folder alone while a run works in it");
  }
  write_out();
  file_.sync();
}

}  // namespace tutti::train
