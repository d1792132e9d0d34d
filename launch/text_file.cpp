#include "launch/text_file.h"

#include <span>
#include <system_error>

#include "src/train/posix_file.h"

namespace tutti::launch {

std::optional<std::string> read_text(const std::filesystem::path& file) {
  try {
    const train::PosixFile opened = train::PosixFile::open(file);
    std::string text(static_cast<size_t>(opened.size_bytes()), '\0');
    opened.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace tutti::launch
