// CRC-32 by zlib.
#include "data/checksum.h"

#include <zlib.h>

namespace tutti::data {

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace tutti::data
