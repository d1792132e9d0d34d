// Two ways to read bytes at an offset of a file that does not change: through a mapping, and through pread.
#ifndef TUTTI_DATA_BYTE_SOURCE_H
#define TUTTI_DATA_BYTE_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace tutti::data {

/// Bytes of a file, readable by any number of threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Copies the bytes from `offset_bytes` on. Throws DataError when the file has been cut or cannot be read.
  virtual void read(int64_t offset_bytes, std::span<std::byte> out) const = 0;
};

/// Throws DataError for anything but a regular file (a folder, a pipe) before it is opened: a pipe would block. Passes
/// what is not there or cannot be looked at: opening that tells more.
void require_regular_file(const std::filesystem::path& path);

/// The size of a regular file. Throws DataError as require_regular_file does, and where there is no file.
int64_t regular_file_bytes(const std::filesystem::path& path);

/// Maps the first `file_bytes` of a file: the page cache holds one copy for all processes of a node.
std::unique_ptr<ByteSource> map_file(const std::filesystem::path& path, int64_t file_bytes);

/// Reads by pread, for file systems on which a mapping is slow or a fault under it fatal.
std::unique_ptr<ByteSource> pread_file(const std::filesystem::path& path);

/// Whether a file lies on a network or parallel file system (NFS, SMB, Lustre, GPFS, BeeGFS, Ceph, PanFS, AFS, FUSE).
bool on_network_file_system(const std::filesystem::path& path);

}  // namespace tutti::data

#endif
