#include "src/train/metrics_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace tutti::train {

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t keep_bytes) : file_(PosixFile::open_or_create(file)) {
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

/// The open file still holds what was removed.
void MetricsLog::put_back() {
  spdlog::warn("{} was removed or replaced while this run writes it: it is written again", file_.path().string());
  std::vector<std::byte> written(static_cast<size_t>(written_bytes_));
  file_.read_at(0, written);
  std::filesystem::create_directories(file_.path().parent_path());
  PosixFile again = PosixFile::open_or_create(file_.path());
  again.resize(0);
  again.write_at(0, written);
  file_ = std::move(again);
}

void MetricsLog::sync() {
  if (!file_.is_linked()) put_back();
  write_out();
  file_.sync();
}

}  // namespace tutti::train
