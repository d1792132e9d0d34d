// Reads IDX files, the format of the MNIST digits.
#ifndef TUTTI_DATA_IMPORT_IDX_H
#define TUTTI_DATA_IMPORT_IDX_H

#include <filesystem>
#include <memory>

#include "data/row_source.h"

namespace tutti::data {

/// Images and labels, plain or gzip, of equal row count. Gives the input `x` (images of two dimensions get a leading
/// channel dimension of 1) and the target `y`. Throws DataError.
/// Format: two zero bytes, a type code, the number of dimensions, the dimensions (32 bits each), the elements; all
/// numbers big-endian.
std::unique_ptr<RowSource> import_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace tutti::data

#endif
