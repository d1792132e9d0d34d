// Writes shards.
#include "data/shard_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "data/checksum.h"
#include "data/data_error.h"
#include "data/file_sync.h"

namespace tutti::data {
namespace {

void sync(const std::filesystem::path& path) {
  if (const std::error_code error = sync_to_device(path)) {
    throw DataError(fmt::format("{}: cannot be synced to disk: {}", path.string(), error.message()));
  }
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path path, int64_t row_count, const std::vector<Field>& inputs,
                         const std::vector<Field>& targets, const Options& options)
    : path_(std::move(path)), row_count_(row_count), options_(options) {
  if (options.existing == Existing::kRefuse && std::filesystem::exists(path_)) {
    throw DataError(
        fmt::format("{}: exists already; remove it, choose another name, or replace it with --force", path_.string()));
  }
  temporary_path_ = path_;
  temporary_path_ += fmt::format(".{}.tmp", ::getpid());
  std::filesystem::remove(temporary_path_);
  try {
    file_ = std::make_unique<Hdf5File>(Hdf5File::create(temporary_path_));
    file_->write_attribute("format", std::string(kShardFormat));
    file_->write_attribute("version", kShardVersion);
    file_->write_attribute("rows", row_count);
    for (const char* group : {"/inputs", "/targets", "/checksums", "/checksums/inputs", "/checksums/targets"}) {
      file_->create_group(group);
    }
    for (const Field& field : inputs) add_column(FieldRole::kInput, field);
    for (const Field& field : targets) add_column(FieldRole::kTarget, field);
  } catch (...) {
    columns_.clear();
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(temporary_path_, ignored);
    throw;
  }
}

ShardWriter::~ShardWriter() {
  if (!file_) return;
  columns_.clear();
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_path_, ignored);
}

void ShardWriter::add_column(FieldRole role, const Field& field) {
  const auto same_name = [&](const Column& column) { return column.field.name == field.name; };
  if (std::any_of(columns_.begin(), columns_.end(), same_name)) {
    throw DataError(fmt::format("{}: two fields are named '{}'", path_.string(), field.name));
  }
  std::vector<int64_t> shape = field.shape;
  shape.insert(shape.begin(), row_count_);
  Hdf5Dataset dataset = file_->create_dataset(dataset_path(role, field.name), field.type, shape, options_.storage);
  if (!field.mean.empty()) {
    dataset.write_attribute("mean", field.mean);
    dataset.write_attribute("deviation", field.deviation);
  }
  if (!field.class_names.empty()) dataset.write_attribute("class_names", field.class_names);
  if (field.class_count > 0) dataset.write_attribute("class_count", field.class_count);
  columns_.push_back({role, field, std::move(dataset), {}});
}

void ShardWriter::add_to_checksums(Column& column, int64_t count, std::span<const std::byte> bytes) const {
  const int64_t row_bytes = column.field.row_bytes();
  for (int64_t done = 0; done < count;) {
    const int64_t in_block = (appended_ + done) % kShardBlockRows;
    if (in_block == 0) column.checksums.push_back(0);
    const int64_t rows = std::min(count - done, kShardBlockRows - in_block);
    column.checksums.back() =
        crc32(static_cast<uint32_t>(column.checksums.back()),
              bytes.subspan(static_cast<size_t>(done * row_bytes), static_cast<size_t>(rows * row_bytes)));
    done += rows;
  }
}

void ShardWriter::append(int64_t count, std::span<const std::span<const std::byte>> columns) {
  if (columns.size() != columns_.size() || appended_ + count > row_count_) {
    throw DataError(fmt::format("{}: {} rows of {} fields after {} rows: expected {} rows of {} fields in all",
                                path_.string(), count, columns.size(), appended_, row_count_, columns_.size()));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    columns_[i].dataset.write_rows(appended_, count, columns[i]);
    add_to_checksums(columns_[i], count, columns[i]);
  }
  appended_ += count;
}

void ShardWriter::finish() {
  if (appended_ != row_count_) {
    throw DataError(fmt::format("{}: expected {} rows, got {}", path_.string(), row_count_, appended_));
  }
  for (const Column& column : columns_) {
    const int64_t shape[] = {static_cast<int64_t>(column.checksums.size())};
    file_->create_dataset(checksum_path(column.role, column.field.name), ElementType::kInt64, shape)
        .write_rows(0, shape[0], std::as_bytes(std::span(column.checksums)));
  }
  columns_.clear();
  file_->close();
  sync(temporary_path_);
  std::filesystem::rename(temporary_path_, path_);
  file_.reset();
  sync(folder_of(path_));
}

}  // namespace tutti::data
