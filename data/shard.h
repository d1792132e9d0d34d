// The layout of a shard file, and what one says about itself.
//
// A shard is an HDF5 file with the groups /inputs and /targets. Each holds one data set per field, whose dimension 0
// counts the rows. /checksums/inputs/NAME and /checksums/targets/NAME (optional) hold the CRC-32 of the rows of each
// block of 4,096. Attributes of the file: format ("tutti shard"), version, rows. Attributes of a field (optional):
// mean, deviation (in stored units), class_names, class_count.
#ifndef TUTTI_DATA_SHARD_H
#define TUTTI_DATA_SHARD_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/field.h"

namespace tutti::data {

inline constexpr int64_t kShardVersion = 1;
inline constexpr int64_t kShardBlockRows = 4096;
inline constexpr const char* kShardFormat = "tutti shard";

enum class FieldRole { kInput, kTarget };

/// "/inputs/NAME" or "/targets/NAME".
std::string dataset_path(FieldRole role, const std::string& name);
std::string checksum_path(FieldRole role, const std::string& name);

inline int64_t block_count_of(int64_t row_count) {
  return row_count / kShardBlockRows + (row_count % kShardBlockRows != 0 ? 1 : 0);
}

/// One field of one shard.
struct ShardColumn {
  FieldRole role = FieldRole::kInput;
  Field field;
  std::optional<int64_t> offset_bytes;  ///< of the first row, when the rows lie in the file one after the other
  std::vector<uint32_t> checksums;      ///< per block; empty = none stored
};

/// A shard's description of itself, checked against the size of the file.
struct ShardInfo {
  std::filesystem::path path;
  int64_t file_bytes = 0;
  int64_t row_count = 0;
  std::vector<ShardColumn> columns;  ///< the inputs, then the targets, each bytewise by name
};

/// Reads all but the rows. Throws DataError naming the file and what is missing, cut or of a wrong type.
ShardInfo read_shard_info(const std::filesystem::path& path);

}  // namespace tutti::data

#endif
