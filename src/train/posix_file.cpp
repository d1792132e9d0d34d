// An open file descriptor whose every call is checked.
#include "src/train/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "data/file_kind.h"
#include "data/file_sync.h"

namespace tutti::train {
namespace {

constexpr mode_t kMode = 0666;

[[noreturn]] void fail_with_errno(const char* what, const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), fmt::format("{} {}", what, path.string()));
}

void refuse_all_but_regular_files(const std::filesystem::path& path) {
  const std::string other = data::other_than_regular_file(path);
  if (other.empty()) return;
  throw std::system_error(std::make_error_code(std::errc::not_supported),
                          fmt::format("cannot open {}: expected a regular file, found {}", path.string(), other));
}

}  // namespace

PosixFile PosixFile::open(const std::filesystem::path& path) {
  refuse_all_but_regular_files(path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno("cannot open", path);
  return {descriptor, path};
}

PosixFile PosixFile::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor < 0) fail_with_errno("cannot create", path);
  return {descriptor, path};
}

std::optional<PosixFile> PosixFile::create_new(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (descriptor < 0 && errno == EEXIST) return std::nullopt;
  if (descriptor < 0) fail_with_errno("cannot create", path);
  return PosixFile(descriptor, path);
}

PosixFile PosixFile::open_or_create(const std::filesystem::path& path) {
  refuse_all_but_regular_files(path);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (descriptor < 0) fail_with_errno("cannot open", path);
  return {descriptor, path};
}

PosixFile::PosixFile(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      unsynced_bytes_(other.unsynced_bytes_) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(unsynced_bytes_, other.unsynced_bytes_);
  return *this;
}

PosixFile::~PosixFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t PosixFile::size_bytes() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("cannot find the size of");
  return status.st_size;
}

bool PosixFile::is_linked() const {
  struct stat own {
  }, named{};
  if (::fstat(descriptor_, &own) != 0) fail("cannot find the links of");
  if (::stat(path_.c_str(), &named) == 0) return named.st_dev == own.st_dev && named.st_ino == own.st_ino;
  if (errno != ENOENT && errno != ENOTDIR) fail("cannot look at");
  return false;
}

void PosixFile::read_at(int64_t offset_bytes, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot read");
    if (count == 0) {
      throw std::system_error(
          std::make_error_code(std::errc::io_error),
          fmt::format("{} ends at byte {}, {} bytes too early", path_.string(), offset_bytes, bytes.size()));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
}

void PosixFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t wanted = std::min(bytes.size(), static_cast<size_t>(kSyncBytes - unsynced_bytes_));
    const ssize_t count = ::write(descriptor_, bytes.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    unsynced_bytes_ += count;
    if (unsynced_bytes_ >= kSyncBytes) sync();
  }
}

void PosixFile::write_at(int64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
}

void PosixFile::resize(int64_t size_bytes) {
  if (::ftruncate(descriptor_, size_bytes) != 0) fail("cannot change the size of");
}

void PosixFile::sync() {
  if (::fsync(descriptor_) != 0) fail("cannot write to the storage device");
  unsynced_bytes_ = 0;
}

void PosixFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot close");
}

void PosixFile::fail(const char* what) const { fail_with_errno(what, path_); }

void sync_directory(const std::filesystem::path& directory) {
  if (const std::error_code error = data::sync_to_device(directory)) {
    throw std::system_error(error, fmt::format("cannot sync the folder {}", directory.string()));
  }
}

void replace_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path aside = file.string() + ".writing";
  try {
    PosixFile writer = PosixFile::create(aside);
    writer.write(std::as_bytes(std::span(text)));
    writer.sync();
    writer.close();
    std::filesystem::rename(aside, file);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(aside, ignored);
    throw;
  }
  sync_directory(file.has_parent_path() ? file.parent_path() : std::filesystem::path("."));
}

}  // namespace tutti::train
