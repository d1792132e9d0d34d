// Reads NumPy arrays: .npy files and .npz archives.
#ifndef TUTTI_DATA_IMPORT_NPY_H
#define TUTTI_DATA_IMPORT_NPY_H

#include <filesystem>
#include <memory>
#include <string>

#include "data/row_source.h"

namespace tutti::data {

/// Two arrays of equal first dimension, from .npy files (plain or gzip). Gives the input `x` and the target `y`.
/// Read are format versions 1 to 3, C order, little-endian elements of uint8, bool, int8 to int64, float32 and float64.
/// Throws DataError.
std::unique_ptr<RowSource> import_npy(const std::filesystem::path& x, const std::filesystem::path& y);

/// The same from two arrays of one .npz archive, stored or deflated.
std::unique_ptr<RowSource> import_npz(const std::filesystem::path& archive, const std::string& x, const std::string& y);

}  // namespace tutti::data

#endif
