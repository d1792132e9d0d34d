// The lane allocator: alignment, determinism, frees from other threads, exhaustion, lifetimes.
#include "src/program/lane_allocator.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace tutti::testing {
namespace {

using program::block_bytes;
using program::LaneRegion;
using program::OutOfRegion;

constexpr int64_t kMegabyte = 1 << 20;

class LaneAllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program::install_lane_allocator();
    at::get_num_threads();
    at::set_num_threads(1);
  }
};

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }
uintptr_t address(const at::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()); }

/// Fails unless one block can have all of the region in use but `held_bytes`. The region's extent is its
/// capacity afterwards.
void expect_free_but(const LaneRegion& region, int64_t held_bytes) {
  EXPECT_NO_THROW(bytes(region.capacity_bytes() - held_bytes - block_bytes(0))) << held_bytes << " bytes held";
}

TEST_F(LaneAllocatorTest, TensorsInsideAScopeComeFromTheRegionAndAreAligned) {
  LaneRegion region(kMegabyte);
  const at::Tensor outside = bytes(10);
  std::vector<at::Tensor> inside;
  int64_t expected = 0;
  {
    const LaneRegion::Use use(region);
    for (const int64_t count : {1, 63, 64, 65, 1000, 4097}) {
      inside.push_back(bytes(count));
      expected += block_bytes(count);
      EXPECT_EQ(address(inside.back()) % 64, 0u) << count;
      EXPECT_EQ(region.extent_bytes(), expected) << count;
    }
  }
  const at::Tensor after = bytes(10);
  EXPECT_EQ(region.extent_bytes(), expected);
  EXPECT_EQ(address(outside) % 64, 0u);
  EXPECT_EQ(address(after) % 64, 0u);
}

TEST_F(LaneAllocatorTest, AnEmptyTensorTakesNothing) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  const at::Tensor empty = at::empty({0});
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(region.extent_bytes(), 0);
}

/// Random allocations and frees; the offsets of all tensors, and a check that no two alive overlap.
std::vector<uintptr_t> churn(LaneRegion& region, uint32_t seed) {
  std::mt19937 random(seed);
  const LaneRegion::Use use(region);
  const uintptr_t base = address(bytes(1));
  std::vector<at::Tensor> alive;
  std::vector<uintptr_t> offsets;
  for (int i = 0; i < 2000; ++i) {
    if (alive.size() > 20 || (!alive.empty() && random() % 3 == 0)) {
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(random() % alive.size()));
      continue;
    }
    at::Tensor made = bytes(1 + static_cast<int64_t>(random() % 3000));
    for (const at::Tensor& other : alive) {
      const bool is_apart =
          address(made) + made.numel() <= address(other) || address(other) + other.numel() <= address(made);
      EXPECT_TRUE(is_apart) << "allocation " << i;
    }
    offsets.push_back(address(made) - base);
    made.fill_(i % 256);
    alive.push_back(std::move(made));
  }
  return offsets;
}

TEST_F(LaneAllocatorTest, TheSameRequestsGiveTheSameOffsets) {
  LaneRegion first(kMegabyte), second(kMegabyte);
  const std::vector<uintptr_t> offsets = churn(first, 5);
  EXPECT_EQ(churn(second, 5), offsets);
  EXPECT_EQ(churn(first, 5), offsets) << "an emptied region begins again";
  const LaneRegion::Use use(first);
  expect_free_but(first, 0);
}

TEST_F(LaneAllocatorTest, FreedNeighboursJoin) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  const int64_t third = region.capacity_bytes() / 4;
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}, {1, 2, 0}}) {
    std::vector<at::Tensor> parts{bytes(third), bytes(third), bytes(third)};
    for (const int i : order) parts[i].reset();
    SCOPED_TRACE(::testing::Message() << "freed in order " << order[0] << order[1] << order[2]);
    expect_free_but(region, 0);
  }
}

TEST_F(LaneAllocatorTest, ExhaustionNamesWhatWasWantedAndLeavesTheRegionUsable) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  const at::Tensor held = bytes(kMegabyte / 2);
  try {
    bytes(kMegabyte - 1000);
    FAIL() << "allocated";
  } catch (const OutOfRegion& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("1047576 bytes wanted"), std::string::npos) << message;
    EXPECT_NE(message.find("1048576 bytes 524352 are in use"), std::string::npos) << message;
    EXPECT_NE(message.find("Raise `memory`"), std::string::npos) << message;
  }
  expect_free_but(region, block_bytes(kMegabyte / 2));
  EXPECT_THROW(at::empty({int64_t{1} << 60}, at::kByte), OutOfRegion);
}

TEST_F(LaneAllocatorTest, OtherThreadsMayFreeWhileTheLaneAllocates) {
  LaneRegion region(64 * kMegabyte);
  const LaneRegion::Use use(region);
  for (int round = 0; round < 50; ++round) {
    std::vector<at::Tensor> given;
    given.reserve(100);
    for (int i = 0; i < 100; ++i) given.push_back(at::full({500}, i, at::kInt));
    std::thread other([moved = std::move(given)]() mutable {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(moved[i].eq(i).all().item<bool>());
        moved[i].reset();
      }
    });
    for (int i = 0; i < 200; ++i) {
      const at::Tensor own = at::full({300}, i, at::kInt);
      EXPECT_TRUE(own.eq(i).all().item<bool>());
    }
    other.join();
  }
  const at::Tensor last = bytes(1);  // takes back what the others freed
  EXPECT_LT(region.extent_bytes(), kMegabyte);
  expect_free_but(region, block_bytes(1));
}

TEST_F(LaneAllocatorTest, TensorsOutliveTheirScopeAndTheirRegion) {
  at::Tensor survivor;
  {
    LaneRegion region(kMegabyte);
    const LaneRegion::Use use(region);
    survivor = at::full({1000}, 7, at::kInt);
  }
  EXPECT_TRUE(survivor.eq(7).all().item<bool>());
  std::thread([moved = std::move(survivor)]() mutable { moved.reset(); }).join();
}

TEST_F(LaneAllocatorTest, ScopesNestAndARegionHasOneUserAtATime) {
  LaneRegion outer(kMegabyte), inner(kMegabyte);
  const LaneRegion::Use use(outer);
  {
    const LaneRegion::Use nested(inner);
    const at::Tensor a = bytes(100);
    EXPECT_EQ(inner.extent_bytes(), block_bytes(100));
    EXPECT_EQ(outer.extent_bytes(), 0);
    EXPECT_THROW(LaneRegion::Use{outer}, std::logic_error);
  }
  const at::Tensor b = bytes(100);
  EXPECT_EQ(outer.extent_bytes(), block_bytes(100));
  std::thread([&] { EXPECT_THROW(LaneRegion::Use{outer}, std::logic_error); }).join();
}

TEST_F(LaneAllocatorTest, ATensorGrowsAndShrinksByItsStorage) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  at::Tensor tensor = at::arange(10);
  tensor.resize_({1000});
  EXPECT_TRUE(at::equal(tensor.narrow(0, 0, 10), at::arange(10)));
}

TEST_F(LaneAllocatorTest, RawBlocksAreFreedByTheRawDeleter) {
  c10::Allocator* allocator = c10::GetAllocator(c10::DeviceType::CPU);
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  void* raw = allocator->raw_allocate(100);
  EXPECT_EQ(region.extent_bytes(), block_bytes(100));
  allocator->raw_deallocate(raw);
  expect_free_but(region, 0);
}

}  // namespace
}  // namespace tutti::testing
