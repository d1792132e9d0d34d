// The calendar at the ends of its ranges.
#include "src/train/calendar.h"

#include <gtest/gtest.h>

#include <limits>

namespace tutti::train {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Calendar, AccumulatesAtMostTheBatchesOfAnEpoch) {
  ModelSpec spec;
  spec.epochs = 3;
  for (const int64_t accumulate : {int64_t{10}, int64_t{11}, kMost}) {
    spec.accumulate = accumulate;
    const Calendar calendar(spec, 10);
    EXPECT_EQ(calendar.steps_per_epoch(), 1) << accumulate;
    EXPECT_EQ(calendar.total_steps(), 3) << accumulate;
    const StepBatches batches = calendar.batches_after(2);
    EXPECT_EQ(batches.epoch, 2) << accumulate;
    EXPECT_EQ(batches.first_batch, 0) << accumulate;
    EXPECT_EQ(batches.last_batch, 10) << accumulate;
  }
}

TEST(Calendar, CountsNoFewerStepsWhereTheirNumberDoesNotFit) {
  ModelSpec spec;
  spec.epochs = int64_t{1} << 60;
  const Calendar endless(spec, 1000);
  EXPECT_EQ(endless.total_steps(), kMost);
  EXPECT_FALSE(endless.is_done(0));
  EXPECT_EQ(endless.epoch_ended(kMost), kMost / 1000 + 1);
  spec.max_steps = 7;
  EXPECT_EQ(Calendar(spec, 1000).total_steps(), 7);
}

}  // namespace
}  // namespace tutti::train
