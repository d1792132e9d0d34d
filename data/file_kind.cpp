#include "data/file_kind.h"

#include <system_error>

namespace tutti::data {

std::string name_of(std::filesystem::file_type type) {
  using std::filesystem::file_type;
  switch (type) {
    case file_type::regular:
      return "a regular file";
    case file_type::directory:
      return "a folder";
    case file_type::fifo:
      return "a pipe";
    case file_type::socket:
      return "a socket";
    case file_type::character:
    case file_type::block:
      return "a device";
    case file_type::not_found:
      return "nothing";
    default:
      return "something else";
  }
}

std::string other_than_regular_file(const std::filesystem::path& path) {
  using std::filesystem::file_type;
  std::error_code error;
  const file_type type = std::filesystem::status(path, error).type();
  const bool looked_at = type != file_type::none && type != file_type::not_found;
  return looked_at && type != file_type::regular ? name_of(type) : "";
}

}  // namespace tutti::data
