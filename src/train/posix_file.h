// An open file descriptor whose every call is checked.
#ifndef TUTTI_SRC_TRAIN_POSIX_FILE_H
#define TUTTI_SRC_TRAIN_POSIX_FILE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tutti::train {

/// Owns a file descriptor. All members throw std::system_error, whose text names the file, what failed and the
/// system's reason; the destructor closes silently.
class PosixFile {
 public:
  /// Opens an existing file for reading.
  static PosixFile open(const std::filesystem::path& path);
  /// Makes an empty file for writing, or empties the one that is there.
  static PosixFile create(const std::filesystem::path& path);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  int64_t size_bytes() const;

  /// Fills `bytes` from the given offset. A file that ends earlier is an error.
  void read_at(int64_t offset_bytes, std::span<std::byte> bytes) const;

  /// Appends all of `bytes`.
  void write(std::span<const std::byte> bytes);

  /// Returns once the content is on the storage device.
  void sync();

  /// Closes; a file system may report a failed write only now.
  void close();

 private:
  PosixFile(int descriptor, std::filesystem::path path);
  [[noreturn]] void fail(const char* what) const;

  int descriptor_ = -1;
  std::filesystem::path path_;
};

/// Returns once the entries of a directory (a rename in it, a new file) are on the storage device.
void sync_directory(const std::filesystem::path& directory);

}  // namespace tutti::train

#endif
