// The directory of a ZIP archive, checked in full before anything that it claims is believed.
#ifndef TUTTI_DATA_ZIP_DIRECTORY_H
#define TUTTI_DATA_ZIP_DIRECTORY_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/data_error.h"

namespace tutti::data {

/// An archive that is damaged or not read. The text names the archive and the fault; what to do is for the caller to
/// add, who knows what the archive is for.
class ZipError : public DataError {
 public:
  using DataError::DataError;
};

enum class ZipMethod { kStored, kDeflated };

struct ZipMember {
  std::string name;
  ZipMethod method = ZipMethod::kStored;
  uint32_t crc = 0;          ///< CRC-32 of the uncompressed bytes
  int64_t stored_bytes = 0;  ///< in the archive
  int64_t bytes = 0;         ///< uncompressed
  int64_t data_offset = 0;   ///< of the stored bytes in the archive
};

/// The members in the directory's order, of archives of any size (ZIP64). What it ensures: names are unique, not empty
/// and at most 511 bytes without a NUL; every local header says what the directory says; headers and stored bytes lie
/// before the directory and overlap no other member's; a stored member has as many bytes as it stores, a deflated one
/// no more than deflate can make of them. A name may still be absolute or lead out of a folder.
/// Throws ZipError where that does not hold (a cut or damaged archive, a ZIP bomb), and for encrypted members, other
/// methods, archives in several parts and directories beyond 256 MiB; another DataError for a file that cannot be read
/// and anything but a regular file.
/// Takes no more memory than a few times the directory.
/// Format: PKWARE, .ZIP File Format Specification (APPNOTE.TXT) 6.3, sections 4.3 to 4.5.
std::vector<ZipMember> read_zip_directory(const std::filesystem::path& archive);

}  // namespace tutti::data

#endif
