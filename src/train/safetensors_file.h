// A safetensors file open for reading.
#ifndef TUTTI_SRC_TRAIN_SAFETENSORS_FILE_H
#define TUTTI_SRC_TRAIN_SAFETENSORS_FILE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/train/posix_file.h"
#include "src/train/safetensors.h"

namespace tutti::train {

/// What a file's header says of one tensor.
struct StoredTensor {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  ///< in bytes from the start of the data
};

/// Holds the header alone; tensors go from the file straight to where they belong. Types: F64 F32 F16 BF16 I64 I32 I16
/// I8 U8 BOOL. Throws SafetensorsError naming the file, what was expected and what was found.
class SafetensorsFile {
 public:
  /// Opens the file and checks its header: bounds, overlaps, types, and its size (at most 100 MB). Does not assume
  /// alignment.
  explicit SafetensorsFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// In the order of the header.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// Null where there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;

  /// Reads one of this file's tensors into `into`, which is contiguous, in CPU memory and of the same shape. Where the
  /// types differ, numbers are converted as at::Tensor::copy_ does it, through a buffer of 1 MiB.
  void read(const StoredTensor& tensor, const at::Tensor& into) const;

 private:
  void read_header();
  void convert(const StoredTensor& tensor, const at::Tensor& into) const;

  std::filesystem::path path_;
  PosixFile file_;
  int64_t data_begin_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace tutti::train

#endif
