// First fit over a short sorted list of free ranges.
#include "src/program/region_arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "src/program/region_poison.h"

namespace tutti::program {

LaneRegion::Arena::Arena(int64_t capacity_bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  capacity_ = std::max<int64_t>(1, (capacity_bytes + page - 1) / page) * page;
  void* mapped = mmap(nullptr, static_cast<size_t>(capacity_), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("lane region: no address space for {} bytes. Lower the memory limit or the "
                                        "number of lanes",
                                        capacity_));
  }
  base_ = static_cast<std::byte*>(mapped);
  free_.reserve(256);
  free_.push_back({0, capacity_});
  poison(base_, static_cast<size_t>(capacity_));
}

LaneRegion::Arena::~Arena() {
  unpoison(base_, static_cast<size_t>(capacity_));
  munmap(base_, static_cast<size_t>(capacity_));
}

LaneRegion::Arena*& LaneRegion::Arena::current() {
  thread_local Arena* arena = nullptr;
  return arena;
}

void LaneRegion::Arena::fail(size_t bytes) const {
  int64_t largest = 0;
  for (const Range& range : free_) largest = std::max(largest, range.bytes);
  throw OutOfRegion(
      fmt::format("lane region: {} bytes wanted, but of its {} bytes {} are in use and the largest free "
                  "range has {}. Raise `memory`, use smaller batches or more grains, or fewer lanes.",
                  bytes, capacity_, live_, largest));
}

void* LaneRegion::Arena::allocate(size_t bytes) {
  take_back_returned();
  if (bytes > static_cast<size_t>(capacity_)) fail(bytes);
  const int64_t wanted = block_bytes(static_cast<int64_t>(bytes));
  const auto range =
      std::find_if(free_.begin(), free_.end(), [wanted](const Range& candidate) { return candidate.bytes >= wanted; });
  if (range == free_.end()) fail(bytes);
  std::byte* begin = base_ + range->begin;
  range->begin += wanted;
  range->bytes -= wanted;
  extent_ = std::max(extent_, range->begin);
  if (range->bytes == 0) free_.erase(range);
  live_ += wanted;
  references_.fetch_add(1, std::memory_order_relaxed);

  unpoison(begin, sizeof(BlockRecord) + bytes);
  new (begin) BlockRecord{this, wanted, nullptr};
  poison(begin, sizeof(BlockRecord));
  return begin + sizeof(BlockRecord);
}

void LaneRegion::Arena::free(BlockRecord* block) {
  if (current() == this) {
    take_back(block);
  } else {
    block->next = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  drop_reference();
}

void LaneRegion::Arena::take_back(BlockRecord* block) {
  const int64_t bytes = block->bytes;
  const int64_t begin = reinterpret_cast<std::byte*>(block) - base_;
  live_ -= bytes;
  auto next = std::lower_bound(free_.begin(), free_.end(), begin,
                               [](const Range& range, int64_t place) { return range.begin < place; });
  const bool joins_next = next != free_.end() && begin + bytes == next->begin;
  const bool joins_previous = next != free_.begin() && std::prev(next)->begin + std::prev(next)->bytes == begin;
  if (joins_next && joins_previous) {
    std::prev(next)->bytes += bytes + next->bytes;
    free_.erase(next);
  } else if (joins_next) {
    next->begin = begin;
    next->bytes += bytes;
  } else if (joins_previous) {
    std::prev(next)->bytes += bytes;
  } else {
    free_.insert(next, {begin, bytes});
  }
  poison(block, static_cast<size_t>(bytes));
}

void LaneRegion::Arena::take_back_returned() {
  if (returned_.load(std::memory_order_relaxed) == nullptr) return;
  BlockRecord* block = returned_.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    unpoison(block, sizeof(BlockRecord));
    BlockRecord* next = block->next;
    take_back(block);
    block = next;
  }
}

void LaneRegion::Arena::drop_reference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void LaneRegion::Arena::begin_use() {
  if (in_use_.exchange(true, std::memory_order_acquire)) {
    throw std::logic_error("lane region: it is in use already. Give every lane a region of its own.");
  }
  take_back_returned();
}

void LaneRegion::Arena::end_use() { in_use_.store(false, std::memory_order_release); }

}  // namespace tutti::program
