// Makes what was written durable.
#ifndef TUTTI_DATA_FILE_SYNC_H
#define TUTTI_DATA_FILE_SYNC_H

#include <filesystem>
#include <system_error>

namespace tutti::data {

/// Returns once the content of a file, or the entries of a folder (a rename in it, a new file), are on the storage
/// device, or the system's reason why not. Some file systems cannot sync a folder (EINVAL): its entries are then as
/// durable as they make them, and that is no error.
std::error_code sync_to_device(const std::filesystem::path& path);

}  // namespace tutti::data

#endif
