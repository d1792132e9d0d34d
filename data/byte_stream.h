// Bytes read from front to back: of plain files, of gzip files, of members of ZIP archives.
#ifndef TUTTI_DATA_BYTE_STREAM_H
#define TUTTI_DATA_BYTE_STREAM_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace tutti::data {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// For messages: "train-images.gz", "digits.npz:x.npy".
  virtual const std::string& name() const = 0;
  /// Fills `out` and returns its size, or less at the end. Throws DataError when the bytes are cut or damaged.
  virtual size_t read(std::span<std::byte> out) = 0;
  virtual void rewind() = 0;

  /// Fills `out`, or throws DataError that says how many bytes of `what` were expected and found.
  void read_all(std::span<std::byte> out, const std::string& what);
};

/// Opens a file, plain or gzip (told by its first bytes).
std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path);

}  // namespace tutti::data

#endif
