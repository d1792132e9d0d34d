// An open file descriptor whose every call is checked.
#ifndef TUTTI_SRC_TRAIN_POSIX_FILE_H
#define TUTTI_SRC_TRAIN_POSIX_FILE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace tutti::train {

/// Owns a file descriptor. All members throw std::system_error, whose text names the file, what failed and the
/// system's reason; the destructor closes silently.
class PosixFile {
 public:
  static constexpr int64_t kSyncBytes = int64_t{64} << 20;

  /// Opens an existing file for reading.
  static PosixFile open(const std::filesystem::path& path);
  /// Makes an empty file for writing, or empties the one that is there.
  static PosixFile create(const std::filesystem::path& path);
  /// Makes an empty file for writing; none, where there is a file of this name already.
  static std::optional<PosixFile> create_new(const std::filesystem::path& path);
  /// Opens a file for reading and writing and keeps what it holds; makes an empty one where there is none.
  static PosixFile open_or_create(const std::filesystem::path& path);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  int64_t size_bytes() const;

  /// False once the file was removed, or replaced by another of its name: what is written then is lost.
  bool is_linked() const;

  const std::filesystem::path& path() const { return path_; }

  /// Fills `bytes` from the given offset. A file that ends earlier is an error.
  void read_at(int64_t offset_bytes, std::span<std::byte> bytes) const;

  /// Appends all of `bytes`. Of a large file every kSyncBytes are on the storage device before the next are written, so
  /// that no single call waits long for the device.
  void write(std::span<const std::byte> bytes);

  /// Writes all of `bytes` from the given offset on. Where that fails, a part of them may have been written.
  void write_at(int64_t offset_bytes, std::span<const std::byte> bytes);

  /// Cuts the file to this length, or lengthens it by zeros.
  void resize(int64_t size_bytes);

  /// Returns once the content is on the storage device.
  void sync();

  /// Closes; a file system may report a failed write only now.
  void close();

 private:
  PosixFile(int descriptor, std::filesystem::path path);
  [[noreturn]] void fail(const char* what) const;

  int descriptor_ = -1;
  std::filesystem::path path_;
  int64_t unsynced_bytes_ = 0;  // of write()
};

/// Returns once the entries of a directory (a rename in it, a new file) are on the storage device, as far as its file
/// system can tell (data::sync_to_device). Throws std::system_error naming the directory.
void sync_directory(const std::filesystem::path& directory);

/// Makes `text` the content of `file` as a whole and durably: written aside, synced, renamed, the directory synced.
/// What was there before stays when that fails. Throws std::system_error naming the file.
void replace_file(const std::filesystem::path& file, std::string_view text);

}  // namespace tutti::train

#endif
