// A lane's own memory region, from which the tensors of its runs come.
#ifndef TUTTI_SRC_PROGRAM_LANE_REGION_H
#define TUTTI_SRC_PROGRAM_LANE_REGION_H

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace tutti::program {

/// Every block of a region begins at a multiple of this, and so does the memory that tensors see.
inline constexpr int64_t kRegionAlignment = 64;

/// What an allocation of `bytes` takes of a region: whole 64-byte units and one unit of bookkeeping.
constexpr int64_t block_bytes(int64_t bytes) {
  return (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment + kRegionAlignment;
}

/// An allocation found no room in its region.
class OutOfRegion : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Address space of a fixed capacity, given out in blocks, first fit from the lowest address: the same sequence of
/// requests gives the same offsets. Pages take memory once they are touched. Only one thread at a time allocates from
/// a region (through LaneRegion::Use); blocks may be freed by any thread. Blocks that outlive the region stay valid.
class LaneRegion {
 public:
  /// Reserves `capacity_bytes` of address space, rounded up to whole pages. Throws std::system_error.
  explicit LaneRegion(int64_t capacity_bytes);
  ~LaneRegion();
  LaneRegion(LaneRegion&& other) noexcept;
  LaneRegion& operator=(LaneRegion&& other) noexcept;

  int64_t capacity_bytes() const;
  /// The end of the highest block there ever was: the memory that the region can hold. Exact on the thread that uses
  /// the region, or while none does.
  int64_t extent_bytes() const;

  class Arena;

  /// While it lives, tensors made on this thread come from the region (once install_lane_allocator has been called).
  /// Scopes nest. Throws std::logic_error where the region is in use already.
  class Use {
   public:
    explicit Use(LaneRegion& region);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Arena* arena_;
    Arena* outer_;
  };

 private:
  Arena* arena_;
};

}  // namespace tutti::program

#endif
