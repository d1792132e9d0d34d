// Reads what a shard says about itself.
#include "data/shard.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "data/byte_source.h"
#include "data/hdf5_file.h"

namespace tutti::data {
namespace {

std::vector<uint32_t> read_checksums(const Hdf5File& file, const std::string& path, int64_t row_count) {
  if (!file.has("/checksums") || !file.has(path.substr(0, path.rfind('/'))) || !file.has(path)) return {};
  const Hdf5Dataset dataset = file.open_dataset(path);
  const std::vector<int64_t> shape = dataset.shape();
  if (dataset.type() != ElementType::kInt64 || shape != std::vector<int64_t>{block_count_of(row_count)}) {
    throw DataError(fmt::format("{}: expected {} checksums of int64", dataset.name(), block_count_of(row_count)));
  }
  std::vector<int64_t> values(static_cast<size_t>(shape[0]));
  dataset.read_rows(0, shape[0], std::as_writable_bytes(std::span(values)));
  return {values.begin(), values.end()};
}

void check_normalisation(const Field& field, const std::string& name) {
  const size_t channels = field.mean.size();
  const bool fits =
      channels == 0 || channels == 1 || (!field.shape.empty() && static_cast<int64_t>(channels) == field.shape[0]);
  if (!fits || field.deviation.size() != channels) {
    throw DataError(
        fmt::format("{}: {} means and {} deviations: expected as many of one as of the other, and one for "
                    "all or one per channel of {}",
                    name, channels, field.deviation.size(), describe(field)));
  }
  const auto fault = [&](const char* what, const char* expected, double found) {
    throw DataError(
        fmt::format("{}: attribute '{}': expected {}, found {}; make the shard again", name, what, expected, found));
  };
  for (const double mean : field.mean) {
    if (!std::isfinite(mean)) fault("mean", "finite numbers", mean);
  }
  for (const double deviation : field.deviation) {
    if (!(deviation > 0) || std::isinf(deviation)) fault("deviation", "finite numbers greater than 0", deviation);
  }
}

void check_classes(const Field& field, const std::string& name) {
  const auto names = static_cast<int64_t>(field.class_names.size());
  if (field.class_count < 0) {
    throw DataError(fmt::format("{}: attribute 'class_count': expected 0 or more, found {}; make the shard again", name,
                                field.class_count));
  }
  if (names != 0 && names != field.class_count) {
    throw DataError(
        fmt::format("{}: attribute 'class_names': expected one name for each of {} classes, found {}; make "
                    "the shard again",
                    name, field.class_count, names));
  }
}

ShardColumn read_column(const Hdf5File& file, FieldRole role, const std::string& field_name, const ShardInfo& info) {
  const Hdf5Dataset dataset = file.open_dataset(dataset_path(role, field_name));
  dataset.check_filters();
  ShardColumn column{role, {}, dataset.offset_bytes(), {}};
  Field& field = column.field;
  field.name = field_name;
  field.type = dataset.type();
  field.shape = dataset.shape();
  if (field.shape[0] != info.row_count) {
    throw DataError(fmt::format("{}: expected {} rows as the file's attribute 'rows' says, found {}", dataset.name(),
                                info.row_count, field.shape[0]));
  }
  field.shape.erase(field.shape.begin());
  const int64_t bytes = checked_bytes(field, info.row_count, dataset.name());
  if (dataset.has_attribute("mean")) field.mean = dataset.number_attribute("mean");
  if (dataset.has_attribute("deviation")) field.deviation = dataset.number_attribute("deviation");
  if (dataset.has_attribute("class_names")) field.class_names = dataset.text_list_attribute("class_names");
  field.class_count = dataset.has_attribute("class_count") ? dataset.integer_attribute("class_count")
                                                           : static_cast<int64_t>(field.class_names.size());
  check_normalisation(field, dataset.name());
  check_classes(field, dataset.name());
  column.checksums = read_checksums(file, checksum_path(role, field_name), info.row_count);
  if (!column.offset_bytes) return column;
  const int64_t begin_bytes = *column.offset_bytes;
  if (begin_bytes < 0 || begin_bytes > info.file_bytes || bytes > info.file_bytes - begin_bytes) {
    throw DataError(
        fmt::format("{}: the file is cut: expected {} bytes at byte {}, found {} in all; copy or make it again",
                    dataset.name(), bytes, begin_bytes, info.file_bytes));
  }
  return column;
}

}  // namespace

std::string dataset_path(FieldRole role, const std::string& name) {
  return (role == FieldRole::kInput ? "/inputs/" : "/targets/") + name;
}

std::string checksum_path(FieldRole role, const std::string& name) { return "/checksums" + dataset_path(role, name); }

ShardInfo read_shard_info(const std::filesystem::path& path) {
  ShardInfo info{path, regular_file_bytes(path), 0, {}};
  const Hdf5File file = Hdf5File::open(path);
  if (!file.has_attribute("format") || file.text_attribute("format") != kShardFormat) {
    throw DataError(fmt::format("{}: expected a shard (attribute format = '{}'); make one with `tutti shard`",
                                path.string(), kShardFormat));
  }
  const int64_t version = file.integer_attribute("version");
  if (version != kShardVersion) {
    throw DataError(fmt::format("{}: expected shard version {}, found {}; make the shard again with `tutti shard`",
                                path.string(), kShardVersion, version));
  }
  info.row_count = file.integer_attribute("rows");
  if (info.row_count < 0) {
    throw DataError(fmt::format("{}: attribute 'rows': expected 0 or more, found {}; make the shard again",
                                path.string(), info.row_count));
  }
  for (const FieldRole role : {FieldRole::kInput, FieldRole::kTarget}) {
    const std::string group = role == FieldRole::kInput ? "/inputs" : "/targets";
    const std::vector<std::string> names = file.has(group) ? file.names_in(group) : std::vector<std::string>{};
    if (names.empty() && role == FieldRole::kInput) {
      throw DataError(
          fmt::format("{}: expected at least one data set in the group {}, found none; make the shard "
                      "again with `tutti shard`",
                      path.string(), group));
    }
    for (const std::string& name : names) info.columns.push_back(read_column(file, role, name, info));
  }
  return info;
}

}  // namespace tutti::data
