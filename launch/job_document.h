// YAML text into a tree of nodes, within limits.
#ifndef TUTTI_LAUNCH_JOB_DOCUMENT_H
#define TUTTI_LAUNCH_JOB_DOCUMENT_H

#include <filesystem>
#include <string>

#include "launch/job_faults.h"
#include "launch/job_node.h"

namespace tutti::launch {

inline constexpr int kMaxDepth = 64;  ///< levels of nesting
inline constexpr int64_t kMaxFileBytes = 16 << 20;
inline constexpr int64_t kMaxNodes = 1'000'000;  ///< of one file, aliases written out

/// Parses one YAML document. Syntax errors, several documents, duplicate keys, keys that are not text, and trees beyond
/// kMaxNodes become faults; then the result is a null node. With `setting` >= 0 the text is that `--set` option's
/// value, and all places name it.
Node parse_document(const std::string& text, Faults& faults, int setting = -1);

/// Reads and parses a file. What is missing, empty, too large or no regular file becomes a fault.
Node read_document(const std::filesystem::path& file, Faults& faults);

}  // namespace tutti::launch

#endif
