#include "launch/text_file.h"

#include <fmt/format.h>

#include <span>
#include <system_error>
#include <utility>

#include "data/file_kind.h"
#include "launch/command.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

TextOrReason read_text_or_reason(const std::filesystem::path& file) {
  if (const std::string other = data::other_than_regular_file(file); !other.empty()) {
    return {.text = {}, .reason = fmt::format("it is {}, no regular file", other)};
  }
  try {
    const train::PosixFile opened = train::PosixFile::open(file);
    std::string text(static_cast<size_t>(opened.size_bytes()), '\0');
    opened.read_at(0, std::as_writable_bytes(std::span(text)));
    return {.text = std::move(text), .reason = {}};
  } catch (const std::system_error& error) {
    const bool is_absent =
        error.code() == std::errc::no_such_file_or_directory || error.code() == std::errc::not_a_directory;
    return {.text = {}, .reason = error.code().message(), .is_absent = is_absent};
  }
}

std::optional<std::string> read_text(const std::filesystem::path& file) { return read_text_or_reason(file).text; }

std::optional<std::string> read_text_if_there(const std::filesystem::path& file) {
  TextOrReason found = read_text_or_reason(file);
  if (!found.text && !found.is_absent) {
    throw UsageError(fmt::format("{}: expected a file that can be read, found {}; check what it is and its permissions",
                                 file.string(), found.reason));
  }
  return std::move(found.text);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::status_known(status)) {
    throw UsageError(
        fmt::format("{}: expected a path that can be looked up, found {}; check the permissions of the "
                    "folders that lead there",
                    path.string(), error.message()));
  }
  return std::filesystem::exists(status);
}

}  // namespace tutti::launch
