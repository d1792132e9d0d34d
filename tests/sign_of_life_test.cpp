// A thread that writes a large file gives signs of life, however slow the storage device is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "src/train/lane.h"
#include "src/train/posix_file.h"
#include "tests/shard_files.h"

namespace {

std::function<void()> on_sync;

}  // namespace

/// Stands for the C library's: a device whose syncs the test sees.
extern "C" int fsync(int) {
  if (on_sync) on_sync();
  return 0;
}

namespace tutti::train {
namespace {

TEST(SignOfLife, GrowsWithEveryPieceOfALargeFile) {
  const data::TemporaryFolder folder;
  const std::vector<std::byte> bytes(5 * PosixFile::kSyncBytes / 2);
  Lane lane(0, 1 << 20);
  std::vector<int64_t> signs;
  std::thread thread([&] {
    lane.cpu_clock.follow_this_thread();
    PosixFile file = PosixFile::create(folder / "weights.safetensors");
    on_sync = [&] { signs.push_back(lane.signs_of_life()); };
    file.write(bytes);
    file.sync();
    on_sync = nullptr;
  });
  thread.join();
  ASSERT_EQ(signs.size(), 3) << "expected a sync for each " << PosixFile::kSyncBytes << " bytes";
  EXPECT_LT(signs[0], signs[1]);
  EXPECT_LT(signs[1], signs[2]);
}

TEST(SignOfLife, StandsStillWhileTheThreadWaits) {
  Lane lane(0, 1 << 20);
  std::atomic<bool> waits = false, ended = false;
  std::thread thread([&] {
    lane.cpu_clock.follow_this_thread();
    waits = true;
    ended.wait(false);
  });
  while (!waits) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int64_t before = lane.signs_of_life();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(lane.signs_of_life(), before);
  ended = true;
  ended.notify_one();
  thread.join();
}

}  // namespace
}  // namespace tutti::train
