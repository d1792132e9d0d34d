#include "launch/prediction_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "launch/command.h"
#include "launch/text_table.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

/// A file that is written aside, and takes its name when it is complete.
class FileAside {
 public:
  explicit FileAside(fs::path file)
      : path_(std::move(file)), aside_(path_.string() + ".writing"), file_(train::PosixFile::create(aside_)) {}

  void write(std::string_view text) { file_.write(std::as_bytes(std::span(text))); }

  void publish() {
    file_.sync();
    file_.close();
    fs::rename(aside_, path_);
  }

 private:
  fs::path path_, aside_;
  train::PosixFile file_;
};

class NpyFile : public PredictionFile {
 public:
  NpyFile(fs::path file, int64_t row_count) : file_(std::move(file)), row_count_(row_count) {}

  void write(const at::Tensor& outputs) override {
    if (!std::exchange(has_header_, true)) file_.write(header(outputs));
    const at::Tensor values = outputs.contiguous();
    file_.write({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
  }

  void close() override { file_.publish(); }

 private:
  /// Magic, version, length of the dictionary, and the dictionary padded so that data begin at a multiple of 64 bytes.
  std::string header(const at::Tensor& outputs) const {
    std::string shape = fmt::format("{},", row_count_);
    for (int64_t d = 1; d < outputs.dim(); ++d) shape += fmt::format(" {},", outputs.size(d));
    std::string dictionary =
        fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': ({}), }}", outputs.element_size(), shape);
    constexpr size_t kPrefix = 10, kAlignment = 64;
    dictionary.append(kAlignment - (kPrefix + dictionary.size() + 1) % kAlignment, ' ');
    dictionary += '\n';
    const auto length = static_cast<uint16_t>(dictionary.size());
    std::string prefix("\x93NUMPY\x01\x00", 8);
    prefix += static_cast<char>(length & 0xff);
    prefix += static_cast<char>(length >> 8);
    return prefix + dictionary;
  }

  FileAside file_;
  int64_t row_count_;
  bool has_header_ = false;
};

class CsvFile : public PredictionFile {
 public:
  CsvFile(fs::path file, std::optional<ClassNames> classes) : file_(std::move(file)), classes_(std::move(classes)) {}

  void write(const at::Tensor& outputs) override {
    const at::Tensor table = outputs.reshape({outputs.size(0), -1}).contiguous();  // [rows, values of a row]
    std::string text = row_ == 0 ? header(table.size(1)) : "";
    for (int64_t r = 0; r < table.size(0); ++r) {
      table.scalar_type() == at::kDouble ? add_row(row_values<double>(table, r), text)
                                         : add_row(row_values<float>(table, r), text);
    }
    file_.write(text);
  }

  void close() override { file_.publish(); }

 private:
  template <typename Value>
  static std::span<const Value> row_values(const at::Tensor& table, int64_t row) {
    return {table.const_data_ptr<Value>() + row * table.size(1), static_cast<size_t>(table.size(1))};
  }

  std::string header(int64_t value_count) const {
    std::string line = classes_ ? "row,class" : "row";
    if (has_names()) line += ",name";
    for (int64_t i = 0; i < value_count; ++i) line += fmt::format(",y{}", i);
    return line + "\n";
  }

  template <typename Value>
  void add_row(std::span<const Value> values, std::string& text) {
    text += fmt::format("{}", row_++);
    if (classes_) {
      const auto greatest = static_cast<size_t>(std::ranges::max_element(values) - values.begin());
      text += fmt::format(",{}", greatest);
      if (has_names()) text += ',';
      if (has_names() && greatest < classes_->size()) text += csv_cell((*classes_)[greatest]);
    }
    for (const Value value : values) text += fmt::format(",{}", value);
    text += '\n';
  }

  bool has_names() const { return classes_ && !classes_->empty(); }

  FileAside file_;
  std::optional<ClassNames> classes_;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<PredictionFile> make_prediction_file(const fs::path& file, int64_t row_count,
                                                     std::optional<ClassNames> classes) {
  if (file.extension() == ".npy") return std::make_unique<NpyFile>(file, row_count);
  if (file.extension() == ".csv") return std::make_unique<CsvFile>(file, std::move(classes));
  throw UsageError(fmt::format("--out: expected a name that ends in .npy or .csv, found {}", file.string()));
}

}  // namespace tutti::launch
