// The checksums of shards: CRC-32 of every block of 4,096 rows.
#ifndef TUTTI_DATA_CHECKSUM_H
#define TUTTI_DATA_CHECKSUM_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::data {

/// CRC-32 (the polynomial of zlib and gzip) of `bytes`, continued from `crc`; 0 starts a new one.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace tutti::data

#endif
