// The directory of a zip file, checked before anything that it claims is believed.
#ifndef TUTTI_SRC_GRAPH_ZIP_DIRECTORY_H
#define TUTTI_SRC_GRAPH_ZIP_DIRECTORY_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::graph {

struct ZipMember {
  std::string name;
  int64_t size_bytes = 0;
};

/// The members of a zip file of uncompressed members. Takes no more memory than a few times the file's directory.
/// Throws GraphError, naming the file, where the directory is damaged or missing (a truncated file), a member is
/// compressed or encrypted, the members together are larger than the file (a zip bomb), or a name is absolute or leads
/// out of its folder.
/// Format: PKWARE's APPNOTE.TXT 6.3, sections 4.3.12 to 4.3.16.
std::vector<ZipMember> read_zip_directory(const std::filesystem::path& file);

}  // namespace tutti::graph

#endif
