// A minimal writer of zip files whose every field a test can falsify.
#ifndef TUTTI_TESTS_ZIP_WRITER_H
#define TUTTI_TESTS_ZIP_WRITER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::testing {

/// A member; what is set in `claimed_bytes` and `method` stands in the headers in place of the truth.
struct ZipEntry {
  std::string name;
  std::string bytes;
  uint16_t method = 0;
  std::optional<uint32_t> claimed_bytes = {};
};

inline uint32_t crc32(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320 & (0 - (crc & 1)));
  }
  return ~crc;
}

/// The bytes of a zip file. Format: PKWARE's APPNOTE.TXT 6.3.
inline std::string zip_bytes(const std::vector<ZipEntry>& entries) {
  const auto number = [](std::string& text, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  };
  std::string file, directory;
  for (const ZipEntry& entry : entries) {
    std::string fields;  // from the needed version to the length of the name: equal in both headers
    number(fields, 20, 2);
    number(fields, 0, 2);
    number(fields, entry.method, 2);
    number(fields, 0, 4);
    number(fields, crc32(entry.bytes), 4);
    number(fields, entry.method == 0 ? entry.claimed_bytes.value_or(entry.bytes.size()) : entry.bytes.size(), 4);
    number(fields, entry.claimed_bytes.value_or(entry.bytes.size()), 4);
    number(fields, entry.name.size(), 2);
    directory += std::string("PK\1\2\x14\0", 6) + fields;
    number(directory, 0, 12);
    number(directory, file.size(), 6);
    directory.erase(directory.size() - 2);
    directory += entry.name;
    file += std::string("PK\3\4", 4) + fields;
    number(file, 0, 2);
    file += entry.name + entry.bytes;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  number(end, entries.size(), 2);
  number(end, entries.size(), 2);
  number(end, directory.size(), 4);
  number(end, file.size(), 4);
  number(end, 0, 2);
  return file + directory + end;
}

}  // namespace tutti::testing

#endif
