// CIFAR-10 and CIFAR-100: each row is one or two label bytes and 3,072 pixels, channel by channel.
#include "data/import_cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "data/byte_source.h"
#include "data/byte_stream.h"
#include "data/data_error.h"

namespace tutti::data {
namespace {

constexpr int64_t kPixels = int64_t{3} * 32 * 32;

std::vector<std::filesystem::path> files_of(CifarKind kind, CifarPart part, const std::filesystem::path& folder) {
  if (kind == CifarKind::kCifar100) return {folder / (part == CifarPart::kTrain ? "train.bin" : "test.bin")};
  if (part == CifarPart::kTest) return {folder / "test_batch.bin"};
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) files.push_back(entry.path());
  }
  if (files.empty()) {
    throw DataError(
        fmt::format("{}: expected the unpacked folder of CIFAR-10's binary version, found no "
                    "data_batch_*.bin",
                    folder.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> class_names_in(const std::filesystem::path& path, int64_t class_count) {
  require_regular_file(path);
  std::vector<std::string> names;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (!names.empty() && static_cast<int64_t>(names.size()) != class_count) {
    throw DataError(fmt::format("{}: expected {} class names, found {}", path.string(), class_count, names.size()));
  }
  return names;
}

class CifarSource : public RowSource {
 public:
  CifarSource(CifarKind kind, CifarPart part, const std::filesystem::path& folder)
      : files_(files_of(kind, part, folder)), label_bytes_(kind == CifarKind::kCifar10 ? 1 : 2) {
    for (const std::filesystem::path& path : files_) {
      const int64_t size = regular_file_bytes(path);
      if (size % row_bytes() != 0) {
        throw DataError(
            fmt::format("{}: the file is cut: expected rows of {} bytes, found {} rows and {} bytes; fetch "
                        "it again",
                        path.string(), row_bytes(), size / row_bytes(), size % row_bytes()));
      }
      rows_.push_back(size / row_bytes());
      row_count_ += rows_.back();
    }
    const int64_t class_count = kind == CifarKind::kCifar10 ? 10 : 100;
    const char* names = kind == CifarKind::kCifar10 ? "batches.meta.txt" : "fine_label_names.txt";
    inputs_[0] = {.name = "x", .type = ElementType::kUint8, .shape = {3, 32, 32}};
    targets_[0] = {.name = "y",
                   .type = ElementType::kUint8,
                   .class_names = class_names_in(folder / names, class_count),
                   .class_count = class_count};
  }

  const std::vector<Field>& inputs() const override { return inputs_; }
  const std::vector<Field>& targets() const override { return targets_; }
  int64_t row_count() const override { return row_count_; }
  void read(int64_t count, RowBytes& rows) override;
  void rewind() override {
    file_ = 0;
    file_row_ = 0;
    stream_.reset();
  }

 private:
  int64_t row_bytes() const { return label_bytes_ + kPixels; }

  std::vector<std::filesystem::path> files_;
  std::vector<int64_t> rows_;  // of each file
  int64_t label_bytes_, row_count_ = 0;
  std::vector<Field> inputs_{1}, targets_{1};
  size_t file_ = 0;
  int64_t file_row_ = 0;
  std::unique_ptr<ByteStream> stream_;
};

void CifarSource::read(int64_t count, RowBytes& rows) {
  rows.assign(2, {});
  std::vector<std::byte> row(static_cast<size_t>(row_bytes()));
  for (int64_t i = 0; i < count; ++i, ++file_row_) {
    while (file_row_ == rows_.at(file_)) {
      ++file_;
      file_row_ = 0;
      stream_.reset();
    }
    if (!stream_) stream_ = open_stream(files_[file_]);
    stream_->read_all(row, fmt::format("row {}", file_row_));
    const std::byte label = row[static_cast<size_t>(label_bytes_ - 1)];  // CIFAR-100: coarse, then fine
    if (std::to_integer<int64_t>(label) >= targets_[0].class_count) {
      throw DataError(fmt::format("{}, row {}: expected a label in [0, {}), found {}", stream_->name(), file_row_,
                                  targets_[0].class_count, std::to_integer<int>(label)));
    }
    rows[0].insert(rows[0].end(), row.begin() + label_bytes_, row.end());
    rows[1].push_back(label);
  }
}

}  // namespace

std::unique_ptr<RowSource> import_cifar(CifarKind kind, CifarPart part, const std::filesystem::path& folder) {
  return std::make_unique<CifarSource>(kind, part, folder);
}

}  // namespace tutti::data
