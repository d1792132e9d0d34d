// Writes safetensors files: named tensors, readable by Python's `safetensors` package.
// Format: 8-byte little-endian header length, JSON header, raw little-endian data.
#ifndef TUTTI_SRC_TRAIN_SAFETENSORS_H
#define TUTTI_SRC_TRAIN_SAFETENSORS_H

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tutti::train {

class SafetensorsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  ///< CPU, contiguous
};

/// Writes the tensors and syncs the file to disk. The header lists them in the given order; the data starts at a
/// multiple of 64 bytes, larger elements first, so that each tensor is aligned to its element. The same input gives the
/// same bytes. Atomicity (writing aside, then renaming) is the caller's. Throws SafetensorsError naming the file and
/// the system's reason (no space left, ...).
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tutti::train

#endif
