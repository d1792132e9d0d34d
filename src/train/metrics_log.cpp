#include "src/train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace tutti::train {

namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), std::string(doing) + " " + path.string());
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path file, int64_t keep_bytes) : path_(std::move(file)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot open", path_);
  const off_t size = lseek(descriptor_, 0, SEEK_END);
  if (size < 0) fail("cannot measure", path_);
  written_bytes_ = std::min<int64_t>(keep_bytes, size);
  if (ftruncate(descriptor_, written_bytes_) != 0) fail("cannot cut back", path_);
}

MetricsLog::~MetricsLog() {
  if (descriptor_ < 0) return;
  write_out();
  close(descriptor_);
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_bytes_(other.written_bytes_),
      unwritten_(std::move(other.unwritten_)) {}

void MetricsLog::write(const nlohmann::json& line) {
  unwritten_ += line.dump() + '\n';
  write_out();
}

bool MetricsLog::write_out() {
  while (!unwritten_.empty()) {
    const ssize_t count = pwrite(descriptor_, unwritten_.data(), unwritten_.size(), written_bytes_);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written_bytes_ += count;
    unwritten_.erase(0, static_cast<size_t>(count));
  }
  return true;
}

void MetricsLog::sync() {
  if (!write_out()) fail("cannot write", path_);
  if (fdatasync(descriptor_) != 0) fail("cannot sync", path_);
}

}  // namespace tutti::train
