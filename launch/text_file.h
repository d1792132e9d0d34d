// Whole text files.
#ifndef TUTTI_LAUNCH_TEXT_FILE_H
#define TUTTI_LAUNCH_TEXT_FILE_H

#include <filesystem>
#include <optional>
#include <string>

namespace tutti::launch {

/// A regular file's bytes, or why they cannot be had.
struct TextOrReason {
  std::optional<std::string> text;
  std::string reason;      ///< where there is no text: "Permission denied", "it is a pipe, no regular file"
  bool is_absent = false;  ///< there is no such file
};

/// Reads a whole file. Opens nothing but regular files.
TextOrReason read_text_or_reason(const std::filesystem::path& file);

/// A regular file's bytes; none where it cannot be read, or is something else.
std::optional<std::string> read_text(const std::filesystem::path& file);

/// A regular file's bytes; none where there is no such file. Throws UsageError, with the reason, where it cannot be
/// read.
std::optional<std::string> read_text_if_there(const std::filesystem::path& file);

/// Whether the path leads to something. Throws UsageError, with the reason, where the system does not tell.
bool is_there(const std::filesystem::path& path);

}  // namespace tutti::launch

#endif
