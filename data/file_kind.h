// What a path leads to, for refusing all but regular files.
#ifndef TUTTI_DATA_FILE_KIND_H
#define TUTTI_DATA_FILE_KIND_H

#include <filesystem>
#include <string>

namespace tutti::data {

/// "a folder", "a pipe", "a socket", "a device", ...: for messages.
std::string name_of(std::filesystem::file_type type);

/// What else than a regular file is there, by name, links followed; empty for a regular file, for nothing, and for what
/// cannot be looked at: opening those tells more. Opens nothing: to open a named pipe can mean to wait forever.
std::string other_than_regular_file(const std::filesystem::path& path);

}  // namespace tutti::data

#endif
