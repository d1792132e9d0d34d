// Temporary folders and small shards for the tests of data sets.
#ifndef TUTTI_TESTS_SHARD_FILES_H
#define TUTTI_TESTS_SHARD_FILES_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/data_set.h"
#include "data/shard_writer.h"

namespace tutti::data {

/// A folder that is removed with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The message of the Error that `function` throws; fails the test when it throws none.
template <class Error = DataError, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Pixel `element` of global row `row` in the shards of write_shard().
inline uint8_t pixel_of(int64_t row, int64_t element) { return static_cast<uint8_t>((row * 131 + element * 7) % 251); }
inline int32_t label_of(int64_t row) { return static_cast<int32_t>(row % 10); }

struct ShardSpec {
  int64_t first_row = 0, row_count = 0;
  std::vector<int64_t> shape{2, 3, 4};  ///< of an image
  Hdf5Storage storage = Hdf5Storage::kContiguous;
  std::vector<double> mean{}, deviation{};
};

/// A shard of images `x` (uint8, pixel_of) and labels `y` (int32, label_of).
inline void write_shard(const std::filesystem::path& path, const ShardSpec& spec) {
  const Field x{
      .name = "x", .type = ElementType::kUint8, .shape = spec.shape, .mean = spec.mean, .deviation = spec.deviation};
  const Field y{.name = "y", .type = ElementType::kInt32, .class_count = 10};
  ShardWriter writer(path, spec.row_count, {x}, {y}, {ShardWriter::Existing::kReplace, spec.storage});
  const int64_t elements = x.row_elements();
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  for (int64_t row = spec.first_row; row < spec.first_row + spec.row_count; ++row) {
    for (int64_t element = 0; element < elements; ++element) pixels.push_back(pixel_of(row, element));
    labels.push_back(label_of(row));
  }
  const std::span<const std::byte> columns[] = {std::as_bytes(std::span(pixels)), std::as_bytes(std::span(labels))};
  writer.append(spec.row_count, columns);
  writer.finish();
}

}  // namespace tutti::data

#endif
