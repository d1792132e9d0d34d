// Files of predictions: a NumPy array, or comma-separated values.
#ifndef TUTTI_LAUNCH_PREDICTION_FILE_H
#define TUTTI_LAUNCH_PREDICTION_FILE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tutti::launch {

/// The names of a classifier's classes, by index; may be empty.
using ClassNames = std::vector<std::string>;

/// Takes a model's outputs batch by batch. The file appears, whole, at close(). Members throw std::system_error naming
/// the file.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;

  /// `outputs`: [rows, ...], float or double, every batch with the same trailing shape.
  virtual void write(const at::Tensor& outputs) = 0;
  virtual void close() = 0;
};

/// By the name's end: `.npy` (format version 1.0, C order) or `.csv`: `row,class,name,y0,y1,...` with the class of the
/// greatest output where `classes` are given, and its name where it has one. Throws UsageError for another name.
std::unique_ptr<PredictionFile> make_prediction_file(const std::filesystem::path& file, int64_t row_count,
                                                     std::optional<ClassNames> classes);

}  // namespace tutti::launch

#endif
