// Rows of one field of one shard, whatever way they are read.
#ifndef TUTTI_DATA_COLUMN_READER_H
#define TUTTI_DATA_COLUMN_READER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/block_cache.h"
#include "data/byte_source.h"
#include "data/shard.h"

namespace tutti::data {

/// What one gather needs while it reads rows, kept from row to row.
struct RowBuffer {
  std::vector<std::byte> bytes;
  std::shared_ptr<const BlockCache::Block> block;
  BlockCache::Id block_id{-1, -1, -1};
};

/// Rows of one column of one shard, readable by any number of threads at once.
class ColumnReader {
 public:
  virtual ~ColumnReader() = default;
  /// The bytes of a row of this shard; they stay until the next call with the same buffer. Adds what it reads of the
  /// file to `read_bytes`. Throws DataError.
  virtual const std::byte* row(int64_t row, RowBuffer& buffer, int64_t& read_bytes) const = 0;
  /// Rows [begin, end) of this shard are wanted soon. Returns at once.
  virtual void prefetch(int64_t /*begin*/, int64_t /*end*/) const {}
};

enum class Checksums { kVerify, kIgnore };

/// Throws DataError unless `found` is the checksum stored for `block`.
void check_block(const std::string& name, int64_t block, int64_t row_count, uint32_t expected, uint32_t found);

/// Rows that lie one after the other in a file. Each block's checksum is verified when its first row is read, by one
/// thread; others wait for it.
class ContiguousColumn : public ColumnReader {
 public:
  ContiguousColumn(std::shared_ptr<const ByteSource> source, const ShardInfo& shard, const ShardColumn& column,
                   Checksums checksums);
  const std::byte* row(int64_t row, RowBuffer& buffer, int64_t& read_bytes) const override;

 private:
  enum BlockState : uint8_t { kUnread, kReading, kGood };
  void verify(int64_t block, int64_t& read_bytes) const;
  uint32_t checksum_of(int64_t block, int64_t& read_bytes) const;

  std::shared_ptr<const ByteSource> source_;
  std::string name_;
  int64_t offset_bytes_, row_bytes_, row_count_;
  std::vector<uint32_t> checksums_;  // empty = nothing to verify
  mutable std::vector<std::atomic<uint8_t>> states_;
};

/// Rows that only the HDF5 library can read (compressed, chunked, of another byte order): whole blocks through a cache.
class StreamedColumn : public ColumnReader {
 public:
  /// `id` tells the column from the others of the cache; its block is not used.
  StreamedColumn(BlockCache& cache, BlockCache::Id id, int64_t row_bytes, int64_t row_count)
      : cache_(cache), id_(id), row_bytes_(row_bytes), block_count_(block_count_of(row_count)) {}
  const std::byte* row(int64_t row, RowBuffer& buffer, int64_t& read_bytes) const override;
  void prefetch(int64_t begin, int64_t end) const override;

 private:
  BlockCache::Id block_id(int64_t row) const { return {id_.column, id_.shard, row / kShardBlockRows}; }

  BlockCache& cache_;
  BlockCache::Id id_;
  int64_t row_bytes_, block_count_;
};

}  // namespace tutti::data

#endif
