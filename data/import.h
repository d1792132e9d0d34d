// Writes the rows of an importer as shards.
#ifndef TUTTI_DATA_IMPORT_H
#define TUTTI_DATA_IMPORT_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/row_source.h"
#include "data/shard_writer.h"

namespace tutti::data {

struct ImportOptions {
  enum class Normalisation {
    kOwn,   ///< mean and deviation of these rows, for inputs that are quantities
    kNone,  ///< none stored
    kLike,  ///< those of another shard: a test set is normalised as its training set is
  };
  enum class NonFinite { kRefuse, kAllow };

  std::filesystem::path out{};  ///< shards are called OUT-000.h5, OUT-001.h5, ...
  int64_t rows_per_shard = 65536;
  Normalisation normalisation = Normalisation::kOwn;
  std::filesystem::path like{};  ///< for kLike: also gives class names and counts
  NonFinite non_finite = NonFinite::kRefuse;
  ShardWriter::Options writer{};
};

struct ImportSummary {
  struct File {
    std::filesystem::path path;
    int64_t row_count = 0, bytes = 0;
  };
  std::vector<File> files;
  std::vector<Field> inputs, targets;
};

/// Reads all rows twice: for their statistics, then to write them. Nothing is written when the first pass finds a
/// fault. Memory does not grow with the rows. Shards OUT-<digits>.h5 that exist are refused, or (with kReplace)
/// replaced, those beyond the new ones removed. Throws DataError.
ImportSummary import_rows(RowSource& source, const ImportOptions& options);

}  // namespace tutti::data

#endif
