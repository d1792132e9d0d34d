// A minimal writer of ZIP archives, whose fields a test can falsify.
#ifndef TUTTI_TESTS_ZIP_WRITER_H
#define TUTTI_TESTS_ZIP_WRITER_H

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::data {

/// The little-endian bytes of a number, `width` <= 8 of them.
inline std::string little_endian(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// A member; `claimed_bytes` stands in the headers in place of the true size, and of a stored member's size in the
/// archive too. Of the methods only 0 (stored) and 8 (deflated) change the bytes.
struct ZipEntry {
  std::string name;
  std::string bytes;
  uint16_t method = 0;
  std::optional<uint32_t> claimed_bytes = {};
};

/// With 64-bit sizes and offsets everything stands in the records for archives beyond 4 GiB.
enum class ZipSizes { k32Bit, k64Bit };

inline std::string deflated(const std::string& bytes) {
  z_stream stream = {};
  ::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

/// The records behind the directory, which begins at `offset`.
inline std::string zip_end(uint64_t count, uint64_t bytes, uint64_t offset, ZipSizes sizes,
                           const std::string& comment) {
  const auto n = little_endian;
  const std::string end = n(0x06054b50, 4) + n(0, 4), tail = n(comment.size(), 2) + comment;
  if (sizes == ZipSizes::k32Bit) return end + n(count, 2) + n(count, 2) + n(bytes, 4) + n(offset, 4) + tail;
  const std::string end64 = n(0x06064b50, 4) + n(44, 8) + n(45, 2) + n(45, 2) + n(0, 8) + n(count, 8) + n(count, 8) +
                            n(bytes, 8) + n(offset, 8);
  const std::string locator64 = n(0x07064b50, 4) + n(0, 4) + n(offset + bytes, 8) + n(1, 4);
  return end64 + locator64 + end + std::string(12, '\xff') + tail;
}

/// The bytes of an archive. Format: PKWARE, APPNOTE.TXT 6.3.
inline std::string zip_bytes(const std::vector<ZipEntry>& entries, ZipSizes zip_sizes = ZipSizes::k32Bit,
                             const std::string& comment = "") {
  const auto n = little_endian;
  const bool wide = zip_sizes == ZipSizes::k64Bit;
  std::string archive, directory;
  for (const ZipEntry& entry : entries) {
    const std::string stored = entry.method == 8 ? deflated(entry.bytes) : entry.bytes;
    const uint64_t bytes = entry.claimed_bytes.value_or(entry.bytes.size()), offset = archive.size();
    const uint64_t stored_bytes = entry.method == 0 ? bytes : stored.size();
    const uint64_t crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size());
    // From the needed version to the length of the name: equal in both headers.
    const std::string fields = n(45, 2) + n(0, 2) + n(entry.method, 2) + n(0, 4) + n(crc, 4) +
                               (wide ? std::string(8, '\xff') : n(stored_bytes, 4) + n(bytes, 4)) +
                               n(entry.name.size(), 2);
    const std::string sizes = n(bytes, 8) + n(stored_bytes, 8);
    const std::string local_extra = wide ? n(1, 2) + n(16, 2) + sizes : "";
    const std::string extra = wide ? n(0x5455, 2) + n(1, 2) + "x" + n(1, 2) + n(24, 2) + sizes + n(offset, 8) : "";
    archive += n(0x04034b50, 4) + fields + n(local_extra.size(), 2) + entry.name + local_extra + stored;
    directory += n(0x02014b50, 4) + n(45, 2) + fields + n(extra.size(), 2) + std::string(10, '\0') +
                 (wide ? std::string(4, '\xff') : n(offset, 4)) + entry.name + extra;
  }
  return archive + directory + zip_end(entries.size(), directory.size(), archive.size(), zip_sizes, comment);
}

}  // namespace tutti::data

#endif
