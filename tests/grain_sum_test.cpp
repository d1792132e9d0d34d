#include "src/train/grain_sum.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

namespace tutti::train {
namespace {

constexpr int64_t kElements = 37;

/// Values whose sum depends on the order of addition.
float value_of(int64_t grain, int64_t element) {
  return static_cast<float>(std::sin(static_cast<double>(grain * 131 + element * 7)) * std::pow(10.0, grain % 7));
}

/// The definition: S(level, i) = S(level - 1, 2 i) + S(level - 1, 2 i + 1).
float tree_value(int level, int64_t index, int64_t element) {
  if (level == 0) return value_of(index, element);
  return tree_value(level - 1, 2 * index, element) + tree_value(level - 1, 2 * index + 1, element);
}

std::vector<at::Tensor> make_pool(int count) {
  std::vector<at::Tensor> pool;
  pool.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) pool.push_back(at::empty({kElements}, at::kFloat));
  return pool;
}

void compute(GrainSum& sum, int64_t grain, int buffer) {
  float* data = sum.buffer(buffer).data_ptr<float>();
  for (int64_t e = 0; e < kElements; ++e) data[e] = value_of(grain, e);
}

void expect_tree_sums(const GrainSum& sum, int64_t begin, int64_t end) {
  const auto subtrees = comm::subtrees_of(begin, end);
  const auto parts = sum.parts();
  ASSERT_EQ(parts.size(), subtrees.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const float* data = sum.buffer(parts[i].buffer).data_ptr<float>();
    for (int64_t e = 0; e < kElements; ++e) {
      ASSERT_EQ(data[e], tree_value(subtrees[i].level, subtrees[i].index, e)) << "part " << i << ", element " << e;
    }
    ASSERT_EQ(parts[i].scalars.at(0), static_cast<double>(int64_t{1} << subtrees[i].level)) << "grains in part " << i;
  }
}

TEST(GrainSum, EqualsTheTreeForEveryOrderOfFinishing) {
  std::mt19937 random(1);
  for (int64_t begin = 0; begin < 8; ++begin) {
    for (int64_t end = begin + 1; end <= 8; ++end) {
      std::vector<int64_t> order(static_cast<size_t>(end - begin));
      std::iota(order.begin(), order.end(), begin);
      for (int trial = 0; trial < 20; ++trial) {
        GrainSum sum(begin, end, make_pool(8));
        std::vector<int> buffers(8);
        for (const int64_t grain : order) {
          buffers[static_cast<size_t>(grain)] = *sum.acquire();
          compute(sum, grain, buffers[static_cast<size_t>(grain)]);
        }
        std::shuffle(order.begin(), order.end(), random);
        for (size_t i = 0; i < order.size(); ++i) {
          const bool last = sum.finish(order[i], buffers[static_cast<size_t>(order[i])], {1.0});
          ASSERT_EQ(last, i + 1 == order.size());
        }
        expect_tree_sums(sum, begin, end);
      }
    }
  }
}

TEST(GrainSum, NeedsNoMoreBuffersThanItSays) {
  for (const int64_t grains : {1, 2, 4, 8, 16, 64}) {
    GrainSum sum(0, grains, make_pool(GrainSum::buffer_count(0, grains, 1)));
    for (int64_t grain = 0; grain < grains; ++grain) {
      const auto buffer = sum.acquire();
      ASSERT_TRUE(buffer.has_value()) << "grain " << grain << " of " << grains;
      compute(sum, grain, *buffer);
      sum.finish(grain, *buffer, {1.0});
    }
    expect_tree_sums(sum, 0, grains);
  }
}

TEST(GrainSum, IsTheSameFromManyThreads) {
  constexpr int64_t kGrains = 32;
  GrainSum sum(0, kGrains, make_pool(GrainSum::buffer_count(0, kGrains, 4)));
  for (int trial = 0; trial < 50; ++trial) {
    sum.reset();
    std::mutex mutex;
    int64_t next = 0;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        while (true) {
          std::unique_lock lock(mutex);
          if (next == kGrains) return;
          const auto buffer = sum.acquire();
          if (!buffer) continue;
          const int64_t grain = next++;
          lock.unlock();
          compute(sum, grain, *buffer);
          sum.finish(grain, *buffer, {1.0});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    expect_tree_sums(sum, 0, kGrains);
  }
}

}  // namespace
}  // namespace tutti::train
