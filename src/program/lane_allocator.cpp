// A c10 allocator whose every block carries a record of where it came from, so that any thread can free it.
#include "src/program/lane_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include "src/program/region_arena.h"
#include "src/program/region_poison.h"

namespace tutti::program {
namespace {

void* allocate_from_system(size_t bytes) {
  void* memory = nullptr;
  if (bytes > SIZE_MAX / 2 || posix_memalign(&memory, kRegionAlignment, sizeof(BlockRecord) + bytes) != 0) {
    throw std::bad_alloc();
  }
  new (memory) BlockRecord{};
  return static_cast<std::byte*>(memory) + sizeof(BlockRecord);
}

void free_block(void* data) {
  if (data == nullptr) return;
  auto* block = reinterpret_cast<BlockRecord*>(static_cast<std::byte*>(data) - sizeof(BlockRecord));
  unpoison(block, sizeof(BlockRecord));
  if (block->arena != nullptr) {
    block->arena->free(block);
  } else {
    std::free(block);
  }
}

class LaneAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (bytes != 0) {
      LaneRegion::Arena* arena = LaneRegion::Arena::current();
      data = arena != nullptr ? arena->allocate(bytes) : allocate_from_system(bytes);
    }
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void install_lane_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    // LibTorch keeps the pointer, and tensors may be freed after main: the allocator is never destroyed.
    static LaneAllocator* const allocator = new LaneAllocator;
    c10::SetCPUAllocator(allocator, /*priority=*/UINT8_MAX);
  });
}

}  // namespace tutti::program
