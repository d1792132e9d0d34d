// Writes one shard, published by a rename once all of it is on disk.
#ifndef TUTTI_DATA_SHARD_WRITER_H
#define TUTTI_DATA_SHARD_WRITER_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "data/field.h"
#include "data/hdf5_file.h"
#include "data/shard.h"

namespace tutti::data {

/// Writes a shard of a known number of rows, front to back. Until finish() the rows lie in a file of another name in
/// the same folder, which is removed when the writer is destroyed unfinished.
class ShardWriter {
 public:
  enum class Existing { kRefuse, kReplace };
  struct Options {
    Existing existing = Existing::kRefuse;
    Hdf5Storage storage = Hdf5Storage::kContiguous;
  };

  /// Field names must differ between all inputs and targets. Throws DataError, also when `path` exists and may not be
  /// replaced.
  ShardWriter(std::filesystem::path path, int64_t row_count, const std::vector<Field>& inputs,
              const std::vector<Field>& targets, const Options& options);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Appends `count` rows: `columns` holds the bytes of each field, the inputs and then the targets, in the order of
  /// the constructor.
  void append(int64_t count, std::span<const std::span<const std::byte>> columns);

  /// Writes checksums, syncs, and renames. Requires that row_count rows were appended.
  void finish();

 private:
  struct Column {
    FieldRole role;
    Field field;
    Hdf5Dataset dataset;
    std::vector<int64_t> checksums;  // of the blocks begun so far
  };
  void add_column(FieldRole role, const Field& field);
  void add_to_checksums(Column& column, int64_t count, std::span<const std::byte> bytes) const;

  std::filesystem::path path_, temporary_path_;
  int64_t row_count_;
  Options options_;
  int64_t appended_ = 0;
  std::unique_ptr<Hdf5File> file_;  // null once finished
  std::vector<Column> columns_;
};

}  // namespace tutti::data

#endif
