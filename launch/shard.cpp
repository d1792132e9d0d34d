#include "launch/shard.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "data/data_error.h"
#include "data/import.h"
#include "data/import_cifar.h"
#include "data/import_csv.h"
#include "data/import_idx.h"
#include "data/import_npy.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/counted.h"

namespace tutti::launch {

namespace {

constexpr const char* kHelp = R"(Usage: tutti shard FORMAT --out PREFIX [options]

Makes the shards PREFIX-000.h5, PREFIX-001.h5, ... from files of another format:
  idx       images and labels as IDX files (MNIST), plain or gzip
  cifar10   the unpacked folder of CIFAR-10's binary version
  cifar100  the unpacked folder of CIFAR-100's binary version
  csv       a table; all columns but the targets are inputs
  npy       two NumPy arrays; dimension 0 counts the rows
  npz       two arrays of one NumPy archive

Integer targets become classes 0 to the greatest label, where none is negative: those of idx, cifar
and npy by their type, those of csv where every cell is a whole number (or --target-type says so);
text in the one target column of a csv becomes classes in the order of the alphabet. All else is floats.

Mean and deviation of the inputs are stored with them, and used when rows are read. Give the test
set those of the training set with --like.

{}
Examples:
  tutti shard idx --images train-images.gz --labels train-labels.gz --out digits/train --rows-per-shard 3000
  tutti shard idx --images test-images.gz --labels test-labels.gz --out digits/test --like digits/train-000.h5
  tutti shard cifar10 --folder cifar-10-batches-bin --part test --out cifar/test --like cifar/train-000.h5
  tutti shard csv --file iris.csv --target species --out iris/all
  tutti shard npy --x images.npy --y labels.npy --out mine/train
  tutti shard npz --file all.npz --x x_train --y y_train --out mine/train
)";

CommandForm form() {
  using enum OptionKind;
  return {
      "shard",
      "format",
      "a format (idx, cifar10, cifar100, csv, npy or npz)",
      kHelp,
      {{"format", kText, "the format"},
       {"out", kText, "the first part of the shards' names"},
       {"rows-per-shard", kNumber, "rows of each shard but the last (default: 65536)"},
       {"like", kText, "take mean, deviation and class names from this shard"},
       {"no-normalisation", kFlag, "store no mean and deviation"},
       {"compress", kFlag, "write compressed shards: smaller, but slower to read"},
       {"allow-nan", kFlag, "accept inputs that are NaN, infinite or empty"},
       {"force", kFlag, "replace shards of these names"},
       {"images", kText, "idx: the file of images"},
       {"labels", kText, "idx: the file of labels"},
       {"folder", kText, "cifar10, cifar100: the folder"},
       {"part", kText, "cifar10, cifar100: train or test (default: train)"},
       {"file", kText, "csv, npz: the file"},
       {"target", kTexts, "csv: a target column by name, or by number from 0; may be given again (default: the last)"},
       {"target-type", kText, "csv: auto, integer or float (default: auto)"},
       {"header", kText, "csv: auto, yes or no (default: auto)"},
       {"separator", kText, "csv: the character between cells (default: ,)"},
       {"x", kText, "npy: the file of inputs; npz: the name of the inputs"},
       {"y", kText, "npy: the file of targets; npz: the name of the targets"}}};
}

data::CsvOptions csv_options_of(const CommandLine& line) {
  data::CsvOptions options;
  options.targets = line.texts("target");
  options.header = static_cast<data::CsvOptions::Header>(line.choice("header", {"auto", "yes", "no"}));
  options.target_type =
      static_cast<data::CsvOptions::TargetType>(line.choice("target-type", {"auto", "integer", "float"}));
  const std::string separator = line.text("separator", ",");
  if (separator.size() != 1) {
    line.refuse(fmt::format("--separator: expected one character, found '{}'", separator));
  }
  options.separator = separator[0];
  return options;
}

std::unique_ptr<data::RowSource> source_of(const std::string& format, const CommandLine& line) {
  if (format == "idx") return data::import_idx(line.text("images"), line.text("labels"));
  if (format == "cifar10" || format == "cifar100") {
    return data::import_cifar(format == "cifar10" ? data::CifarKind::kCifar10 : data::CifarKind::kCifar100,
                              static_cast<data::CifarPart>(line.choice("part", {"train", "test"})),
                              line.text("folder"));
  }
  if (format == "csv") return data::import_csv(line.text("file"), csv_options_of(line));
  if (format == "npy") return data::import_npy(line.text("x"), line.text("y"));
  if (format == "npz") {
    return data::import_npz(line.text("file"), line.text("x", "x"), line.text("y", "y"));
  }
  line.refuse(fmt::format("expected the format idx, cifar10, cifar100, csv, npy or npz, found '{}'", format));
}

data::ImportOptions import_options_of(const CommandLine& line) {
  using Normalisation = data::ImportOptions::Normalisation;
  data::ImportOptions options;
  options.out = line.text("out");
  options.rows_per_shard = line.integer("rows-per-shard", options.rows_per_shard, /*least=*/1);
  if (line.has("like") && line.has("no-normalisation")) {
    line.refuse("expected --like or --no-normalisation, found both");
  }
  if (line.has("like")) {
    options.normalisation = Normalisation::kLike;
    options.like = line.text("like");
  }
  if (line.has("no-normalisation")) options.normalisation = Normalisation::kNone;
  if (line.has("allow-nan")) options.non_finite = data::ImportOptions::NonFinite::kAllow;
  if (line.has("force")) options.writer.existing = data::ShardWriter::Existing::kReplace;
  if (line.has("compress")) options.writer.storage = data::Hdf5Storage::kCompressed;
  return options;
}

void print_field(const char* role, const data::Field& field) {
  fmt::print("  {:<7} {:<4} {}", role, field.name, data::describe(field));
  if (field.mean.size() == 1) fmt::print("  mean {:.4f}, deviation {:.4f}", field.mean[0], field.deviation[0]);
  if (field.mean.size() > 1) fmt::print("  mean and deviation of {} channels", field.mean.size());
  if (field.class_count > 0) fmt::print("  {} classes", field.class_count);
  fmt::print("\n");
}

void print_summary(const data::ImportSummary& summary) {
  int64_t row_count = 0;
  for (const data::ImportSummary::File& file : summary.files) row_count += file.row_count;
  fmt::print("{} in {}\n", counted(row_count, "row"), counted(summary.files.size(), "shard"));
  for (const data::Field& field : summary.inputs) print_field("input", field);
  for (const data::Field& field : summary.targets) print_field("target", field);
  for (const data::ImportSummary::File& file : summary.files) {
    fmt::print("  {}  {}  {:.1f} MB\n", file.path.string(), counted(file.row_count, "row"),
               static_cast<double>(file.bytes) / 1e6);
  }
}

}  // namespace

int shard_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  try {
    const std::string format = line.text("format");
    const data::ImportOptions options = import_options_of(line);
    print_summary(data::import_rows(*source_of(format, line), options));
  } catch (const data::DataError& error) {
    throw UsageError(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw UsageError(error.what());
  }
  return kDone;
}

}  // namespace tutti::launch
