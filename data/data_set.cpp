// Opens shards and gathers their rows.
#include "data/data_set.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "data/checksum.h"
#include "data/column_reader.h"
#include "data/fnv_hash.h"
#include "data/gather.h"
#include "data/hdf5_file.h"
#include "data/shard.h"

namespace tutti::data {
namespace {

std::vector<std::string> paths_of(const std::vector<std::string>& paths_or_globs) {
  std::set<std::string> paths;
  for (const std::string& pattern : paths_or_globs) {
    glob_t found = {};
    const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.insert(found.gl_pathv[i]);
    ::globfree(&found);
    if (status != 0) {
      throw DataError(
          fmt::format("{}: no such shard: expected a file, or a pattern that matches at least one; make "
                      "shards with `tutti shard`",
                      pattern));
    }
  }
  if (paths.empty()) throw DataError("a data set needs at least one shard; none is named");
  return {paths.begin(), paths.end()};
}

std::string describe(const ShardColumn& column) {
  return fmt::format("{} {}", dataset_path(column.role, column.field.name), describe(column.field));
}

// Names the first difference between two shards' fields.
void check_same_fields(const ShardInfo& first, const ShardInfo& other) {
  const auto fault = [&](const std::string& expected, const std::string& found) {
    throw DataError(fmt::format("{}: its fields differ from those of {}: expected {}, found {}", other.path.string(),
                                first.path.string(), expected, found));
  };
  for (size_t i = 0; i < std::max(first.columns.size(), other.columns.size()); ++i) {
    if (i >= other.columns.size()) fault(describe(first.columns[i]), "no such field");
    if (i >= first.columns.size()) fault("no further field", describe(other.columns[i]));
    if (describe(first.columns[i]) != describe(other.columns[i])) {
      fault(describe(first.columns[i]), describe(other.columns[i]));
    }
    if (first.columns[i].field != other.columns[i].field) {
      fault(describe(first.columns[i]) + " with the same mean, deviation and class names", "others");
    }
  }
}

void check_unique_names(const ShardInfo& shard) {
  std::set<std::string> names;
  for (const ShardColumn& column : shard.columns) {
    if (!names.insert(column.field.name).second) {
      throw DataError(fmt::format("{}: an input and a target are both named '{}': expected different names",
                                  shard.path.string(), column.field.name));
    }
  }
}

// The hash of values of one size, lowest byte first.
class Fingerprint {
 public:
  void add(uint64_t value) {
    std::array<char, 8> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xFF);
    hash_ = fnv_hash({bytes.data(), bytes.size()}, hash_);
  }
  void add(const std::string& text) {
    add(text.size());
    for (const char character : text) add(uint64_t{static_cast<unsigned char>(character)});
  }
  void add(double value) { add(std::bit_cast<uint64_t>(value)); }
  template <class Value>
  void add_all(const std::vector<Value>& values) {
    add(values.size());
    for (const Value& value : values) {
      if constexpr (std::is_integral_v<Value>)
        add(static_cast<uint64_t>(value));
      else
        add(value);
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = kFnvBegin;
};

uint64_t fingerprint_of(const std::vector<ShardInfo>& shards) {
  Fingerprint fingerprint;
  for (const ShardColumn& column : shards[0].columns) {
    fingerprint.add(describe(column));
    fingerprint.add_all(column.field.mean);
    fingerprint.add_all(column.field.deviation);
    fingerprint.add_all(column.field.class_names);
  }
  for (const ShardInfo& shard : shards) {
    fingerprint.add(static_cast<uint64_t>(shard.row_count));
    for (const ShardColumn& column : shard.columns) fingerprint.add_all(column.checksums);
  }
  return fingerprint.value();
}

class ShardedDataSet : public DataSet {
 public:
  ShardedDataSet(std::vector<ShardInfo> shards, const ReadOptions& options);

  int64_t row_count() const override { return shard_begin_.back(); }
  const std::vector<Field>& inputs() const override { return inputs_; }
  const std::vector<Field>& targets() const override { return targets_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  int64_t read_bytes() const override { return read_bytes_.load(std::memory_order_relaxed); }
  std::vector<std::filesystem::path> files() const override;
  std::string place_of(int64_t row) const override;

  void gather(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation, AugmentationKey key,
              std::span<float> out) const override {
    gather_reals(field, rows, augmentation, key, out);
  }
  void gather(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation, AugmentationKey key,
              std::span<double> out) const override {
    gather_reals(field, rows, augmentation, key, out);
  }
  void gather_integers(const Field& field, std::span<const int64_t> rows, int64_t low, int64_t high, int64_t ignored,
                       std::span<int64_t> out) const override;
  void prefetch(const Field& field, int64_t begin, int64_t end) const override;
  StreamUse stream_use() const override;
  int64_t streamed_bytes(int64_t begin, int64_t end) const override;

 private:
  struct Place {
    size_t shard;
    int64_t row;  // within the shard
  };
  struct Column {
    Field field;
    std::vector<std::unique_ptr<ColumnReader>> shards;
    bool streamed = false;
  };
  Place find(int64_t row) const;
  size_t index_of(const Field& field) const;
  void add_readers(size_t shard, const ReadOptions& options);
  BlockCache::Block load_block(BlockCache::Id id, Checksums checksums);
  template <class Real>
  void gather_reals(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation,
                    AugmentationKey key, std::span<Real> out) const;
  template <class Visit>
  void visit_rows(const Field& field, std::span<const int64_t> rows, size_t out_size, const Visit& visit) const;
  template <class Visit>
  void visit_shards(int64_t begin, int64_t end, const Visit& visit) const;

  std::vector<ShardInfo> shards_;
  std::vector<int64_t> shard_begin_;  // of each shard, then the row count
  std::vector<Field> inputs_, targets_;
  std::vector<Column> columns_;
  std::vector<int64_t> streamed_row_bytes_;  // of each shard: of its streamed columns
  int64_t window_bytes_;
  uint64_t fingerprint_;
  mutable std::atomic<int64_t> read_bytes_{0};
  std::unique_ptr<BlockCache> cache_;  // last: its thread uses all of the above
};

ShardedDataSet::ShardedDataSet(std::vector<ShardInfo> shards, const ReadOptions& options)
    : shards_(std::move(shards)),
      shard_begin_{0},
      streamed_row_bytes_(shards_.size()),
      window_bytes_(options.window_bytes),
      fingerprint_(fingerprint_of(shards_)) {
  for (const ShardColumn& column : shards_[0].columns) {
    (column.role == FieldRole::kInput ? inputs_ : targets_).push_back(column.field);
    columns_.push_back({column.field, {}, false});
  }
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shard_begin_.push_back(shard_begin_.back() + shards_[shard].row_count);
    for (const Column& column : columns_) {
      checked_bytes(column.field, shard_begin_.back(), shards_[shard].path.string() + " and the shards before it");
    }
    add_readers(shard, options);
  }
}

void ShardedDataSet::add_readers(size_t shard, const ReadOptions& options) {
  using Access = ReadOptions::Access;
  const ShardInfo& info = shards_[shard];
  const Checksums checksums = options.verify_checksums ? Checksums::kVerify : Checksums::kIgnore;
  const bool pread =
      options.access == Access::kPread || (options.access == Access::kAuto && on_network_file_system(info.path));
  std::shared_ptr<const ByteSource> source;
  for (size_t i = 0; i < info.columns.size(); ++i) {
    const ShardColumn& column = info.columns[i];
    const bool stream = options.access == Access::kStream || !column.offset_bytes;
    if (stream && (options.access == Access::kMap || options.access == Access::kPread)) {
      throw DataError(fmt::format("{}: {} is chunked, compressed or of another byte order and can only be streamed",
                                  info.path.string(), describe(column)));
    }
    if (!stream) {
      if (!source) source = pread ? pread_file(info.path) : map_file(info.path, info.file_bytes);
      columns_[i].shards.push_back(std::make_unique<ContiguousColumn>(source, info, column, checksums));
      continue;
    }
    if (!cache_) {
      cache_ = std::make_unique<BlockCache>(options.window_bytes,
                                            [this, checksums](BlockCache::Id id) { return load_block(id, checksums); });
    }
    const BlockCache::Id id{static_cast<int64_t>(i), static_cast<int64_t>(shard), 0};
    columns_[i].shards.push_back(
        std::make_unique<StreamedColumn>(*cache_, id, column.field.row_bytes(), info.row_count));
    columns_[i].streamed = true;
    streamed_row_bytes_[shard] += column.field.row_bytes();
  }
}

BlockCache::Block ShardedDataSet::load_block(BlockCache::Id id, Checksums checksums) {
  const ShardInfo& shard = shards_[static_cast<size_t>(id.shard)];
  const ShardColumn& column = shard.columns[static_cast<size_t>(id.column)];
  const int64_t begin = id.block * kShardBlockRows;
  const int64_t count = std::min(kShardBlockRows, shard.row_count - begin);
  BlockCache::Block block(static_cast<size_t>(count * column.field.row_bytes()));
  const Hdf5File file = Hdf5File::open(shard.path);
  const Hdf5Dataset dataset = file.open_dataset(dataset_path(column.role, column.field.name));
  dataset.read_rows(begin, count, block);
  if (checksums == Checksums::kVerify && !column.checksums.empty()) {
    check_block(dataset.name(), id.block, shard.row_count, column.checksums[static_cast<size_t>(id.block)],
                crc32(0, block));
  }
  read_bytes_.fetch_add(static_cast<int64_t>(block.size()), std::memory_order_relaxed);
  return block;
}

ShardedDataSet::Place ShardedDataSet::find(int64_t row) const {
  if (row < 0 || row >= row_count()) {
    throw DataError(fmt::format("row {}: expected a row in [0, {}) of {} and its fellows", row, row_count(),
                                shards_[0].path.string()));
  }
  const auto after = std::upper_bound(shard_begin_.begin(), shard_begin_.end(), row);
  return {static_cast<size_t>(after - shard_begin_.begin() - 1), row - *(after - 1)};
}

std::vector<std::filesystem::path> ShardedDataSet::files() const {
  std::vector<std::filesystem::path> files;
  for (const ShardInfo& shard : shards_) files.push_back(shard.path);
  return files;
}

std::string ShardedDataSet::place_of(int64_t row) const {
  const Place place = find(row);
  return fmt::format("{}, row {}", shards_[place.shard].path.string(), place.row);
}

size_t ShardedDataSet::index_of(const Field& field) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field.name != field.name) continue;
    if (columns_[i].field.type == field.type && columns_[i].field.shape == field.shape) return i;
    throw DataError(fmt::format("{}: field '{}': expected {}, found {}", shards_[0].path.string(), field.name,
                                describe(field), describe(columns_[i].field)));
  }
  throw DataError(fmt::format("{}: no field is named '{}'", shards_[0].path.string(), field.name));
}

// Calls visit(position, bytes) for each row. Streamed rows are visited by rising row number, so that a gather needs
// each block once.
template <class Visit>
void ShardedDataSet::visit_rows(const Field& field, std::span<const int64_t> rows, size_t out_size,
                                const Visit& visit) const {
  const Column& column = columns_[index_of(field)];
  if (out_size != rows.size() * static_cast<size_t>(column.field.row_elements())) {
    throw std::invalid_argument(
        fmt::format("gather: {} rows of {} into {} values", rows.size(), describe(column.field), out_size));
  }
  std::vector<size_t> order;
  if (column.streamed) {
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a] < rows[b]; });
  }
  RowBuffer buffer;
  int64_t read_bytes = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t position = column.streamed ? order[i] : i;
    const Place place = find(rows[position]);
    visit(position, column.shards[place.shard]->row(place.row, buffer, read_bytes));
  }
  read_bytes_.fetch_add(read_bytes, std::memory_order_relaxed);
}

template <class Real>
void ShardedDataSet::gather_reals(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation,
                                  AugmentationKey key, std::span<Real> out) const {
  RowConverter<Real> convert(field, augmentation, key);
  const auto row_elements = static_cast<size_t>(field.row_elements());
  visit_rows(field, rows, out.size(), [&](size_t position, const std::byte* stored) {
    convert(stored, rows[position], out.subspan(position * row_elements, row_elements));
  });
}

void ShardedDataSet::gather_integers(const Field& field, std::span<const int64_t> rows, int64_t low, int64_t high,
                                     int64_t ignored, std::span<int64_t> out) const {
  if (!is_integer(field.type)) {
    throw DataError(
        fmt::format("{}: field '{}': expected integers (labels or indices), found {}; make the shard again "
                    "with integer values",
                    shards_[0].path.string(), field.name, name_of(field.type)));
  }
  const auto row_elements = static_cast<size_t>(field.row_elements());
  visit_rows(field, rows, out.size(), [&](size_t position, const std::byte* stored) {
    with_element_type(field.type, [&](auto type) {
      const auto* values = reinterpret_cast<const decltype(type)*>(stored);
      for (size_t i = 0; i < row_elements; ++i) {
        const auto value = static_cast<int64_t>(values[i]);  // NOLINT(bugprone-signed-char-misuse): int8 is a number
        if ((value < low || value >= high) && value != ignored) {
          throw DataError(fmt::format("{}: field '{}': expected a value in [{}, {}), found {}",
                                      place_of(rows[position]), field.name, low, high, value));
        }
        out[position * row_elements + i] = value;
      }
    });
  });
}

// Calls visit(shard, begin, end) for each shard that holds some of the rows, with their places in it.
template <class Visit>
void ShardedDataSet::visit_shards(int64_t begin, int64_t end, const Visit& visit) const {
  while (begin < end) {
    const Place first = find(begin);
    const int64_t count = std::min(end, shard_begin_[first.shard + 1]) - begin;
    visit(first.shard, first.row, first.row + count);
    begin += count;
  }
}

void ShardedDataSet::prefetch(const Field& field, int64_t begin, int64_t end) const {
  const Column& column = columns_[index_of(field)];
  visit_shards(begin, end,
               [&](size_t shard, int64_t first, int64_t last) { column.shards[shard]->prefetch(first, last); });
}

int64_t ShardedDataSet::streamed_bytes(int64_t begin, int64_t end) const {
  int64_t bytes = 0;
  visit_shards(begin, end, [&](size_t shard, int64_t first, int64_t last) {
    const int64_t block_begin = first / kShardBlockRows * kShardBlockRows;
    const int64_t block_end = std::min(block_count_of(last) * kShardBlockRows, shards_[shard].row_count);
    bytes += (block_end - block_begin) * streamed_row_bytes_[shard];
  });
  return bytes;
}

StreamUse ShardedDataSet::stream_use() const {
  if (!cache_) return {};
  StreamUse use{window_bytes_, streamed_bytes(0, row_count()), 0, cache_->held_bytes(), cache_->peak_bytes()};
  for (const Column& column : columns_) {
    if (!column.streamed) continue;
    for (const ShardInfo& shard : shards_) {
      use.block_bytes =
          std::max(use.block_bytes, std::min(kShardBlockRows, shard.row_count) * column.field.row_bytes());
    }
  }
  return use;
}

}  // namespace

int64_t StreamUse::most_bytes(int64_t thread_count) const {
  if (all_bytes <= window_bytes) return all_bytes;
  return std::max(window_bytes, block_bytes) + (1 + thread_count) * block_bytes;
}

std::shared_ptr<const DataSet> DataSet::open(const std::vector<std::string>& paths_or_globs,
                                             const ReadOptions& options) {
  std::vector<ShardInfo> shards;
  for (const std::string& path : paths_of(paths_or_globs)) {
    shards.push_back(read_shard_info(path));
    check_same_fields(shards.front(), shards.back());
  }
  check_unique_names(shards[0]);
  return std::make_shared<ShardedDataSet>(std::move(shards), options);
}

}  // namespace tutti::data
