// Job files for tests, read with data sets that exist in memory only.
#ifndef TUTTI_TESTS_JOB_FIXTURE_H
#define TUTTI_TESTS_JOB_FIXTURE_H

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "launch/job.h"
#include "tests/shard_files.h"

namespace tutti::launch {

/// A data set that knows its fields and has no rows to give.
class FieldsOnly : public data::DataSet {
 public:
  FieldsOnly(int64_t row_count, std::vector<data::Field> inputs, std::vector<data::Field> targets)
      : row_count_(row_count), inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  int64_t row_count() const override { return row_count_; }
  const std::vector<data::Field>& inputs() const override { return inputs_; }
  const std::vector<data::Field>& targets() const override { return targets_; }
  uint64_t fingerprint() const override { return static_cast<uint64_t>(row_count_); }
  void gather(const data::Field&, std::span<const int64_t>, const data::Augmentation&, data::AugmentationKey,
              std::span<float>) const override {}
  void gather(const data::Field&, std::span<const int64_t>, const data::Augmentation&, data::AugmentationKey,
              std::span<double>) const override {}
  void gather_integers(const data::Field&, std::span<const int64_t>, int64_t, int64_t, int64_t,
                       std::span<int64_t>) const override {}
  int64_t read_bytes() const override { return 0; }
  std::string place_of(int64_t) const override { return ""; }

 private:
  int64_t row_count_;
  std::vector<data::Field> inputs_, targets_;
};

inline data::Field field(std::string name, data::ElementType type, std::vector<int64_t> shape,
                         int64_t class_count = 0) {
  data::Field result;
  result.name = std::move(name);
  result.type = type;
  result.shape = std::move(shape);
  result.class_count = class_count;
  return result;
}

/// Data sets by a word in the path: digits (images and 10 classes, 9,000 rows), houses (8 numbers and one, 1,001 rows),
/// words (indices), pairs (two inputs, two targets); a path with "missing" is a missing shard.
inline std::shared_ptr<const data::DataSet> open_fields(const std::vector<std::string>& paths,
                                                        const data::ReadOptions&) {
  using data::ElementType;
  const std::string& path = paths.front();
  const auto names = [&](const char* word) { return path.find(word) != std::string::npos; };
  const data::Field image = field("x", ElementType::kUint8, {1, 28, 28});
  const data::Field label = field("y", ElementType::kUint8, {}, 10);
  if (names("missing")) throw data::DataError(path + ": no such shard");
  if (names("houses")) {
    const std::vector<data::Field> prices{field("price", ElementType::kFloat32, {1})};
    return std::make_shared<FieldsOnly>(1001, std::vector{field("x", ElementType::kFloat32, {8})}, prices);
  }
  if (names("words")) {
    return std::make_shared<FieldsOnly>(500, std::vector{field("tokens", ElementType::kInt32, {16})},
                                        std::vector{label});
  }
  if (names("pairs")) {
    const std::vector<data::Field> labels{field("fine", ElementType::kUint8, {}, 100), label};
    return std::make_shared<FieldsOnly>(500, std::vector{image, field("meta", ElementType::kFloat32, {4})}, labels);
  }
  return std::make_shared<FieldsOnly>(names("test") ? 1000 : 9000, std::vector{image}, std::vector{label});
}

/// One model with everything it needs; `change` replaces a line that begins with the same key, or is added at the end
/// of the model (so `data:` is the model's). Lines 1 to 7: run, data, models, name, layers, loss, optimizer; a new key
/// is on line 8.
inline std::string with(const std::string& change,
                        const std::string& data = "digits: {train: digits.h5, test: test.h5}") {
  std::vector<std::string> lines{"run: {out: out}",
                                 "data: {" + data + "}",
                                 "models:",
                                 "  - name: m",
                                 "    layers: [flatten, {linear: 10}]",
                                 "    loss: cross_entropy",
                                 "    optimizer: sgd"};
  const std::string key = change.substr(0, change.find(':') + 1);
  bool replaced = false;
  for (std::string& line : lines) {
    if (line.starts_with("data:")) continue;
    const size_t begin = line.find_first_not_of(" -");
    if (line.compare(begin, key.size(), key) != 0) continue;
    line.replace(begin, std::string::npos, change);
    replaced = true;
  }
  if (!replaced) lines.push_back("    " + change);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Writes `text` as job.yaml and reads it.
class JobTest : public ::testing::Test {
 protected:
  Job load(const std::string& text, std::vector<std::string> settings = {}) {
    data::write_file(folder_ / "job.yaml", text);
    return load_job(folder_ / "job.yaml", {.settings = std::move(settings), .out = {}, .resume = false}, open_fields);
  }

  /// All faults of a text; empty when it loads.
  std::vector<std::string> faults_of(const std::string& text, std::vector<std::string> settings = {}) {
    try {
      load(text, std::move(settings));
    } catch (const JobError& error) {
      return error.faults();
    }
    return {};
  }

  const data::TemporaryFolder folder_;
};

}  // namespace tutti::launch

#endif
