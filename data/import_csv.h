// Reads tables of comma-separated values.
#ifndef TUTTI_DATA_IMPORT_CSV_H
#define TUTTI_DATA_IMPORT_CSV_H

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/row_source.h"

namespace tutti::data {

struct CsvOptions {
  enum class Header { kAuto, kPresent, kAbsent };
  enum class TargetType { kAuto, kInteger, kFloat };
  std::vector<std::string> targets{};          ///< columns by name, or by number from 0; empty = the last column
  Header header = Header::kAuto;               ///< auto: the first line is a header when none of its cells is a number
  TargetType target_type = TargetType::kAuto;  ///< auto: integers where all are, class names where one is no number
  char separator = ',';
};

/// A table in UTF-8, plain or gzip; cells may stand in double quotes ("" is a quote), without line breaks. Gives the
/// input `x` (float32, all columns that are no targets; an empty cell is NaN) and the target `y`: int64 or float32, a
/// scalar for one column; the words of one column become int64 numbers of the sorted class names. Throws DataError with
/// the line.
std::unique_ptr<RowSource> import_csv(const std::filesystem::path& path, const CsvOptions& options);

}  // namespace tutti::data

#endif
