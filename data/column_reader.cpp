// Reads rows in place or by blocks, and verifies checksums.
#include "data/column_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/checksum.h"
#include "data/data_error.h"

namespace tutti::data {
namespace {

constexpr int64_t kVerifyBytes = int64_t{1} << 16;  // read at once: small enough for the second-level cache

}  // namespace

void check_block(const std::string& name, int64_t block, int64_t row_count, uint32_t expected, uint32_t found) {
  if (expected == found) return;
  throw DataError(
      fmt::format("{}: rows [{}, {}): expected checksum {:08x}, found {:08x}: the file is damaged; copy or "
                  "make it again",
                  name, block * kShardBlockRows, std::min((block + 1) * kShardBlockRows, row_count), expected, found));
}

ContiguousColumn::ContiguousColumn(std::shared_ptr<const ByteSource> source, const ShardInfo& shard,
                                   const ShardColumn& column, Checksums checksums)
    : source_(std::move(source)),
      name_(fmt::format("{}:{}", shard.path.string(), dataset_path(column.role, column.field.name))),
      offset_bytes_(column.offset_bytes.value()),
      row_bytes_(column.field.row_bytes()),
      row_count_(shard.row_count),
      checksums_(checksums == Checksums::kVerify ? column.checksums : std::vector<uint32_t>{}),
      states_(checksums_.size()) {}

const std::byte* ContiguousColumn::row(int64_t row, RowBuffer& buffer, int64_t& read_bytes) const {
  if (!checksums_.empty()) verify(row / kShardBlockRows, read_bytes);
  buffer.bytes.resize(static_cast<size_t>(row_bytes_));
  source_->read(offset_bytes_ + row * row_bytes_, buffer.bytes);
  read_bytes += row_bytes_;
  return buffer.bytes.data();
}

void ContiguousColumn::verify(int64_t block, int64_t& read_bytes) const {
  std::atomic<uint8_t>& state = states_[static_cast<size_t>(block)];
  while (state.load(std::memory_order_acquire) != kGood) {
    uint8_t expected = kUnread;
    if (!state.compare_exchange_strong(expected, kReading, std::memory_order_acq_rel)) {
      if (expected == kReading) state.wait(kReading);
      continue;
    }
    try {
      check_block(name_, block, row_count_, checksums_[static_cast<size_t>(block)], checksum_of(block, read_bytes));
    } catch (...) {
      state.store(kUnread, std::memory_order_release);
      state.notify_all();
      throw;
    }
    state.store(kGood, std::memory_order_release);
    state.notify_all();
  }
}

uint32_t ContiguousColumn::checksum_of(int64_t block, int64_t& read_bytes) const {
  const int64_t first_row = block * kShardBlockRows;
  const int64_t begin = offset_bytes_ + first_row * row_bytes_;
  const int64_t end = begin + std::min(kShardBlockRows, row_count_ - first_row) * row_bytes_;
  std::vector<std::byte> part;
  uint32_t crc = 0;
  for (int64_t at = begin; at < end; at += kVerifyBytes) {
    part.resize(static_cast<size_t>(std::min(kVerifyBytes, end - at)));
    source_->read(at, part);
    crc = crc32(crc, part);
  }
  read_bytes += end - begin;
  return crc;
}

const std::byte* StreamedColumn::row(int64_t row, RowBuffer& buffer, int64_t&) const {
  const BlockCache::Id id = block_id(row);
  if (buffer.block_id != id) {
    buffer.block.reset();  // so that this gather holds no more than one block
    buffer.block = cache_.get(id, block_count_);
    buffer.block_id = id;
  }
  return buffer.block->data() + (row - id.block * kShardBlockRows) * row_bytes_;
}

void StreamedColumn::prefetch(int64_t begin, int64_t end) const {
  for (int64_t row = begin / kShardBlockRows * kShardBlockRows; row < end; row += kShardBlockRows) {
    cache_.prefetch(block_id(row));
  }
}

}  // namespace tutti::data
