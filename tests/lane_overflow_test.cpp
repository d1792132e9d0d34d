// Built with the address sanitizer only: it must notice accesses outside the blocks of a lane region.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "src/program/lane_allocator.h"

namespace tutti::testing {
namespace {

using program::LaneRegion;

constexpr int64_t kMegabyte = 1 << 20;

class LaneOverflowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    program::install_lane_allocator();
  }
};

/// Keeps the compiler from removing an access whose value nobody needs.
void write(volatile float* place) { *place = 1; }

TEST_F(LaneOverflowTest, WritingBehindABlockIsReported) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  for (const int64_t count : {1, 16, 100}) {  // in the middle and at the end of 64 bytes
    const at::Tensor block = at::empty({count});
    const at::Tensor neighbour = at::empty({count});
    EXPECT_DEATH(write(block.mutable_data_ptr<float>() + count), "use-after-poison") << count;
  }
}

TEST_F(LaneOverflowTest, WritingBeforeABlockIsReported) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  const at::Tensor block = at::empty({16});
  EXPECT_DEATH(write(block.mutable_data_ptr<float>() - 1), "use-after-poison");
}

TEST_F(LaneOverflowTest, UsingAFreedBlockIsReported) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  at::Tensor block = at::empty({16});
  float* data = block.mutable_data_ptr<float>();
  block.reset();
  EXPECT_DEATH(write(data), "use-after-poison");
}

TEST_F(LaneOverflowTest, FillingATensorBeyondItsBlockIsReported) {
  LaneRegion region(kMegabyte);
  const LaneRegion::Use use(region);
  const at::Tensor block = at::empty({16}), neighbour = at::empty({16});
  at::Tensor too_long = at::from_blob(block.mutable_data_ptr<float>(), {64});
  EXPECT_DEATH(std::memset(too_long.mutable_data_ptr<float>(), 0, 64 * sizeof(float)), "use-after-poison");
}

}  // namespace
}  // namespace tutti::testing
