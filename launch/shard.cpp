#include "launch/shard.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <memory>

#include "data/data_error.h"
#include "data/import.h"
#include "data/import_cifar.h"
#include "data/import_csv.h"
#include "data/import_idx.h"
#include "data/import_npy.h"
#include "launch/command.h"

namespace tutti::launch {

namespace po = boost::program_options;

namespace {

constexpr const char* kHelp = R"(Usage: tutti shard FORMAT --out PREFIX [options]

Makes the shards PREFIX-000.h5, PREFIX-001.h5, ... from files of another format:
  idx       images and labels as IDX files (MNIST), plain or gzip
  cifar10   the unpacked folder of CIFAR-10's binary version
  cifar100  the unpacked folder of CIFAR-100's binary version
  csv       a table; all columns but the targets are inputs
  npy       two NumPy arrays; dimension 0 counts the rows
  npz       two arrays of one NumPy archive

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

po::options_description declare_options() {
  po::options_description options("Options");
  options.add_options()("help,h", "show this text")("format", po::value<std::string>(), "the format");
  options.add_options()("out", po::value<std::string>(), "the first part of the shards' names");
  options.add_options()("rows-per-shard", po::value<int64_t>(), "rows of each shard but the last (default: 65536)");
  options.add_options()("like", po::value<std::string>(), "take mean, deviation and class names from this shard");
  options.add_options()("no-normalisation", "store no mean and deviation");
  options.add_options()("compress", "write compressed shards: smaller, but slower to read");
  options.add_options()("allow-nan", "accept inputs that are NaN, infinite or empty");
  options.add_options()("force", "replace shards of these names");
  options.add_options()("images", po::value<std::string>(), "idx: the file of images");
  options.add_options()("labels", po::value<std::string>(), "idx: the file of labels");
  options.add_options()("folder", po::value<std::string>(), "cifar10, cifar100: the folder");
  options.add_options()("part", po::value<std::string>(), "cifar10, cifar100: train or test (default: train)");
  options.add_options()("file", po::value<std::string>(), "csv, npz: the file");
  options.add_options()("target", po::value<std::vector<std::string>>(),
                        "csv: a target column by name, or by number from 0; may be given again (default: the last)");
  options.add_options()("target-type", po::value<std::string>(), "csv: auto, integer or float (default: auto)");
  options.add_options()("header", po::value<std::string>(), "csv: auto, yes or no (default: auto)");
  options.add_options()("separator", po::value<std::string>(), "csv: the character between cells (default: ,)");
  options.add_options()("x", po::value<std::string>(), "npy: the file of inputs; npz: the name of the inputs");
  options.add_options()("y", po::value<std::string>(), "npy: the file of targets; npz: the name of the targets");
  return options;
}

// The parsed command line; faults name the option.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& arguments) : declared_(declare_options()) {
    po::positional_options_description positions;
    positions.add("format", 1);
    try {
      po::store(po::command_line_parser(arguments)
                    .options(declared_)
                    .positional(positions)
                    .style(po::command_line_style::default_style & ~po::command_line_style::allow_guessing)
                    .run(),
                values_);
    } catch (const po::error& error) {
      throw UsageError(fmt::format("tutti shard: {}; `tutti shard --help` lists the options", error.what()));
    }
  }

  const po::options_description& declared() const { return declared_; }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::vector<std::string> texts(const std::string& name) const {
    return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  }
  std::string text(const std::string& name) const {
    if (has(name)) return values_[name].as<std::string>();
    const std::string what = name == "format" ? "a format (idx, cifar10, cifar100, csv, npy or npz)" : "--" + name;
    throw UsageError(fmt::format("tutti shard: expected {}, found none; `tutti shard --help` shows how", what));
  }
  std::string text(const std::string& name, const std::string& absent) const { return has(name) ? text(name) : absent; }
  int64_t integer(const std::string& name, int64_t absent) const {
    return has(name) ? values_[name].as<int64_t>() : absent;
  }

  /// The position of the option's value in `choices`; the first when it is absent.
  size_t choice(const std::string& name, const std::vector<std::string>& choices) const {
    const std::string value = text(name, choices[0]);
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] == value) return i;
    }
    throw UsageError(
        fmt::format("tutti shard: --{}: expected {}, found '{}'", name, fmt::join(choices, " or "), value));
  }

 private:
  po::options_description declared_;
  po::variables_map values_;
};

data::CsvOptions csv_options_of(const Arguments& arguments) {
  data::CsvOptions options;
  options.targets = arguments.texts("target");
  options.header = static_cast<data::CsvOptions::Header>(arguments.choice("header", {"auto", "yes", "no"}));
  options.target_type =
      static_cast<data::CsvOptions::TargetType>(arguments.choice("target-type", {"auto", "integer", "float"}));
  const std::string separator = arguments.text("separator", ",");
  if (separator.size() != 1) {
    throw UsageError(fmt::format("tutti shard: --separator: expected one character, found '{}'", separator));
  }
  options.separator = separator[0];
  return options;
}

std::unique_ptr<data::RowSource> source_of(const std::string& format, const Arguments& arguments) {
  if (format == "idx") return data::import_idx(arguments.text("images"), arguments.text("labels"));
  if (format == "cifar10" || format == "cifar100") {
    return data::import_cifar(format == "cifar10" ? data::CifarKind::kCifar10 : data::CifarKind::kCifar100,
                              static_cast<data::CifarPart>(arguments.choice("part", {"train", "test"})),
                              arguments.text("folder"));
  }
  if (format == "csv") return data::import_csv(arguments.text("file"), csv_options_of(arguments));
  if (format == "npy") return data::import_npy(arguments.text("x"), arguments.text("y"));
  if (format == "npz") {
    return data::import_npz(arguments.text("file"), arguments.text("x", "x"), arguments.text("y", "y"));
  }
  throw UsageError(
      fmt::format("tutti shard: expected the format idx, cifar10, cifar100, csv, npy or npz, found '{}'", format));
}

data::ImportOptions import_options_of(const Arguments& arguments) {
  using Normalisation = data::ImportOptions::Normalisation;
  data::ImportOptions options;
  options.out = arguments.text("out");
  options.rows_per_shard = arguments.integer("rows-per-shard", options.rows_per_shard);
  if (options.rows_per_shard < 1) {
    throw UsageError(
        fmt::format("tutti shard: --rows-per-shard: expected at least 1, found {}", options.rows_per_shard));
  }
  if (arguments.has("like") && arguments.has("no-normalisation")) {
    throw UsageError("tutti shard: expected --like or --no-normalisation, found both");
  }
  if (arguments.has("like")) {
    options.normalisation = Normalisation::kLike;
    options.like = arguments.text("like");
  }
  if (arguments.has("no-normalisation")) options.normalisation = Normalisation::kNone;
  if (arguments.has("allow-nan")) options.non_finite = data::ImportOptions::NonFinite::kAllow;
  if (arguments.has("force")) options.writer.existing = data::ShardWriter::Existing::kReplace;
  if (arguments.has("compress")) options.writer.storage = data::Hdf5Storage::kCompressed;
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
  fmt::print("{} rows in {} shards\n", row_count, summary.files.size());
  for (const data::Field& field : summary.inputs) print_field("input", field);
  for (const data::Field& field : summary.targets) print_field("target", field);
  for (const data::ImportSummary::File& file : summary.files) {
    fmt::print("  {}  {} rows  {:.1f} MB\n", file.path.string(), file.row_count, static_cast<double>(file.bytes) / 1e6);
  }
}

}  // namespace

int shard_command(const std::vector<std::string>& arguments) {
  const Arguments given(arguments);
  if (given.has("help")) {
    fmt::print(fmt::runtime(kHelp), fmt::streamed(given.declared()));
    return kDone;
  }
  try {
    const std::string format = given.text("format");
    const data::ImportOptions options = import_options_of(given);
    print_summary(data::import_rows(*source_of(format, given), options));
  } catch (const data::DataError& error) {
    throw UsageError(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw UsageError(error.what());
  }
  return kDone;
}

}  // namespace tutti::launch
