// All tensors of a safetensors file, in memory.
#ifndef TUTTI_TESTS_STORED_TENSORS_H
#define TUTTI_TESTS_STORED_TENSORS_H

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/train/safetensors_file.h"

namespace tutti::test {

struct StoredTensors {
  explicit StoredTensors(const std::filesystem::path& path) {
    const train::SafetensorsFile file(path);
    metadata = file.metadata();
    for (const train::StoredTensor& stored : file.tensors()) {
      tensors.push_back({stored.name, at::empty(stored.shape, stored.type)});
      file.read(stored, tensors.back().tensor);
    }
  }

  const at::Tensor& at(const std::string& name) const {
    const auto found = std::ranges::find(tensors, name, &train::NamedTensor::name);
    if (found == tensors.end()) throw std::out_of_range("no stored tensor " + name);
    return found->tensor;
  }

  std::vector<train::NamedTensor> tensors;  ///< in the order of the header
  std::map<std::string, std::string> metadata;
};

}  // namespace tutti::test

#endif
