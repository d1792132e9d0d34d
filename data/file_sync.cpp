// fsync of a path, and what it answers for folders.
#include "data/file_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::data {

std::error_code sync_to_device(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {errno, std::generic_category()};
  const int error = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  return {error, std::generic_category()};
}

}  // namespace tutti::data
