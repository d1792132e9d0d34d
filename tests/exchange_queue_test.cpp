#include "comm/exchange_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "comm/deadline.h"
#include "comm/tree_sum.h"
#include "tests/back_ends.h"

namespace tutti::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Calls `done` a given number of looks after its start.
class Countdown final : public Operation {
 public:
  Countdown(int looks, std::function<void()> done) : looks_(looks), done_(std::move(done)) {}

  void start() override { started_ = true; }
  bool progress() override {
    EXPECT_TRUE(started_);
    return --looks_ < 0;
  }
  void finished() override { done_(); }
  std::string description() const override { return "countdown"; }
  std::vector<int> waiting_for() const override { return {}; }

 private:
  int looks_;
  std::function<void()> done_;
  bool started_ = false;
};

TEST(ExchangeQueueTest, OperationsEndWhenTheyAreComplete) {
  ExchangeQueue queue;
  std::vector<int> finished;
  for (const int looks : {2, 0, 1}) {
    queue.post(std::make_unique<Countdown>(looks, [&, looks] { finished.push_back(looks); }));
  }
  EXPECT_TRUE(queue.in_flight().empty());
  while (queue.progress_all() || !queue.in_flight().empty()) {
  }
  EXPECT_EQ(finished, (std::vector<int>{0, 1, 2}));
}

TEST(ExchangeQueueTest, FinishedMayPostTheNext) {
  ExchangeQueue queue;
  int finished = 0;
  queue.post(std::make_unique<Countdown>(0, [&] {
    ++finished;
    queue.post(std::make_unique<Countdown>(0, [&] { ++finished; }));
  }));
  EXPECT_TRUE(queue.progress_all());
  EXPECT_TRUE(queue.progress_all());
  EXPECT_FALSE(queue.progress_all());
  EXPECT_EQ(finished, 2);
}

TEST(ExchangeQueueTest, SleepEndsWithAPostOrAWake) {
  // Nothing but a wake-up, or 20 ms, ends the sleep: a hundred of them would take two seconds.
  ExchangeQueue queue;
  std::atomic<bool> ended = false;
  std::thread waker([&] {
    while (!ended) queue.wake();
  });
  const auto begin = steady_clock::now();
  for (int i = 0; i < 100; ++i) queue.sleep();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1000));
  ended = true;
  waker.join();
  queue.progress_all();
  queue.post(std::make_unique<Countdown>(0, [] {}));
  EXPECT_TRUE(queue.progress_all());
}

TEST(ExchangeQueueTest, WakeBeforeTheSleepIsNotLost) {
  ExchangeQueue queue;
  const auto begin = steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    queue.wake();
    queue.sleep();
  }
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1000));
}

TEST(ExchangeQueueTest, SleepsOnlyShortlyWhileOperationsAreInFlight) {
  ExchangeQueue queue;
  bool finished = false;
  queue.post(std::make_unique<Countdown>(1000, [&] { finished = true; }));
  queue.progress_all();
  queue.sleep();  // the post's wake-up
  const auto begin = steady_clock::now();
  for (int i = 0; i < 100; ++i) queue.sleep();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1000));
  EXPECT_FALSE(finished);
}

TEST(ExchangeQueueTest, CountsTheTimeInWhichAnOperationIsInFlight) {
  constexpr milliseconds kPause(30);
  ExchangeQueue queue;
  const auto turn = [&] {
    std::this_thread::sleep_for(kPause);
    queue.progress_all();
  };
  turn();
  EXPECT_EQ(queue.time_in_flight().count(), 0);
  queue.post(std::make_unique<Countdown>(2, [] {}));
  queue.post(std::make_unique<Countdown>(3, [] {}));
  queue.progress_all();
  const auto begin = steady_clock::now();
  while (!queue.in_flight().empty()) turn();
  const auto most = steady_clock::now() - begin;
  EXPECT_GE(queue.time_in_flight(), 3 * kPause);  // two at a time count once
  EXPECT_LE(queue.time_in_flight(), most + milliseconds(5));
  const auto counted = queue.time_in_flight();
  turn();
  EXPECT_EQ(queue.time_in_flight(), counted);
}

/// A sum over all ranks, as a lane posts it.
class RankSum final : public Operation {
 public:
  RankSum(Communicator& communicator, const Team& team, int tag, std::span<float> values, std::atomic<int>& finished)
      : communicator_(communicator), team_(team), tag_(tag), values_(values), finished_(finished) {}

  void start() override {
    sum_.emplace(communicator_, team_, tag_, std::vector<TreeSum<float>::Part>{{values_, {}}}, Word(), values_);
  }
  bool progress() override { return sum_->progress(); }
  void finished() override { ++finished_; }
  std::string description() const override { return "sum " + std::to_string(tag_); }
  std::vector<int> waiting_for() const override { return sum_->waiting_for(); }

 private:
  Communicator& communicator_;
  const Team& team_;
  int tag_;
  std::span<float> values_;
  std::atomic<int>& finished_;
  std::optional<TreeSum<float>> sum_;
};

TEST(ExchangeQueueTest, LanesOfTwoRanksSumThroughTheirCommunicationThreads) {
  constexpr int kLanes = 3, kSumsPerLane = 20;
  const Team team{2, {{0, 0, 1}, {1, 1, 2}}};
  tests::on_local_ranks(2, [&](Communicator& communicator) {
    ExchangeQueue queue;
    std::atomic<int> finished = 0;
    std::vector<std::vector<float>> values(size_t{kLanes} * kSumsPerLane);
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes.emplace_back([&, lane] {
        for (int i = 0; i < kSumsPerLane; ++i) {
          const int index = lane * kSumsPerLane + i;
          auto& own = values[static_cast<size_t>(index)];
          own.assign(100, static_cast<float>(index * (communicator.rank() + 1)));
          queue.post(std::make_unique<RankSum>(communicator, team, 2 * index, own, finished));
        }
      });
    }
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (finished < kLanes * kSumsPerLane && steady_clock::now() < end) {
      if (!queue.progress_all()) queue.sleep();
    }
    for (std::thread& lane : lanes) lane.join();
    ASSERT_EQ(finished, kLanes * kSumsPerLane);
    for (size_t index = 0; index < values.size(); ++index) {
      EXPECT_THAT(values[index], testing::Each(static_cast<float>(3 * index))) << "sum " << index;
    }
  });
}

}  // namespace
}  // namespace tutti::comm
