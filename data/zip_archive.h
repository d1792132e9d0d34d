// Reads members of ZIP archives.
#ifndef TUTTI_DATA_ZIP_ARCHIVE_H
#define TUTTI_DATA_ZIP_ARCHIVE_H

#include <filesystem>
#include <memory>
#include <string>

#include "data/byte_stream.h"

namespace tutti::data {

/// Opens a member that is stored or deflated, in archives of any size (ZIP64). Its checksum is verified at its end.
/// Throws DataError, for an unknown member with the names there are.
std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& archive, const std::string& member);

}  // namespace tutti::data

#endif
