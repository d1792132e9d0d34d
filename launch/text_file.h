// Whole text files.
#ifndef TUTTI_LAUNCH_TEXT_FILE_H
#define TUTTI_LAUNCH_TEXT_FILE_H

#include <filesystem>
#include <optional>
#include <string>

namespace tutti::launch {

/// A regular file's bytes; none where it cannot be read, or is something else.
std::optional<std::string> read_text(const std::filesystem::path& file);

}  // namespace tutti::launch

#endif
