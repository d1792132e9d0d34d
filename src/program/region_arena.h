// Inside a lane region: its address range, its free ranges, and the record before each block.
#ifndef TUTTI_SRC_PROGRAM_REGION_ARENA_H
#define TUTTI_SRC_PROGRAM_REGION_ARENA_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/program/lane_region.h"

namespace tutti::program {

/// The record in front of every block of the lane allocator, whether of a region or not.
struct alignas(kRegionAlignment) BlockRecord {
  LaneRegion::Arena* arena = nullptr;  ///< null: from the system, and the rest of the record is not used
  int64_t bytes = 0;                   ///< of the whole block, this record included
  BlockRecord* next = nullptr;         ///< while the block waits to be taken back
};
static_assert(sizeof(BlockRecord) == kRegionAlignment);

/// Lives until its region is gone and its last block is freed.
class LaneRegion::Arena {
 public:
  explicit Arena(int64_t capacity_bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// A block for `bytes` bytes of data; returns the data. Throws OutOfRegion. Only by the thread that uses the arena.
  void* allocate(size_t bytes);
  /// By any thread. May delete this.
  void free(BlockRecord* block);
  /// The region is gone. May delete this.
  void abandon() { drop_reference(); }

  /// Makes this thread the one that allocates. Throws std::logic_error where there is one already.
  void begin_use();
  void end_use();

  int64_t capacity_bytes() const { return capacity_; }
  int64_t extent_bytes() const { return extent_; }

  /// The arena from which this thread allocates; null where it does not use one.
  static Arena*& current();

 private:
  struct Range {
    int64_t begin, bytes;
  };

  ~Arena();
  void take_back(BlockRecord* block);
  void take_back_returned();
  void drop_reference();
  [[noreturn]] void fail(size_t bytes) const;

  std::byte* base_ = nullptr;
  int64_t capacity_ = 0;
  std::vector<Range> free_;  ///< by address, never adjacent
  int64_t live_ = 0, extent_ = 0;
  std::atomic<bool> in_use_ = false;
  std::atomic<BlockRecord*> returned_ = nullptr;  ///< freed by other threads, or while nobody uses the arena
  std::atomic<int64_t> references_ = 1;           ///< the region and every block
};

}  // namespace tutti::program

#endif
