// Metrics against brute force from their definitions.
#include "src/program/metric.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tutti::testing {
namespace {

using program::Metric;

constexpr int64_t kIgnored = -100;
constexpr int64_t kClasses = 8;

struct Rows {
  at::Tensor outputs = at::randn({200, kClasses});
  at::Tensor labels = at::randint(kClasses, {200}, at::kLong);
};

double value_of(Metric metric, const at::Tensor& outputs, const at::Tensor& targets) {
  std::vector<double> statistics(program::statistics_count(metric, kClasses), 0);
  program::accumulate(metric, outputs, targets, kIgnored, statistics);
  return program::finish(metric, statistics);
}

/// The classes of a row, best first.
std::vector<int64_t> ranking(const at::Tensor& row) {
  std::vector<int64_t> order(row.numel());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return row[a].item<double>() > row[b].item<double>(); });
  return order;
}

double hit_rate(const Rows& rows, int64_t top) {
  int64_t hits = 0, count = 0;
  for (int64_t i = 0; i < rows.labels.numel(); ++i) {
    const int64_t label = rows.labels[i].item<int64_t>();
    if (label == kIgnored) continue;
    const std::vector<int64_t> order = ranking(rows.outputs[i]);
    hits += std::find(order.begin(), order.begin() + top, label) != order.begin() + top;
    ++count;
  }
  return static_cast<double>(hits) / static_cast<double>(count);
}

TEST(Metric, AccuracyAndTop5CountHits) {
  at::manual_seed(1);
  Rows rows;
  rows.labels[3] = kIgnored;
  EXPECT_DOUBLE_EQ(value_of(Metric::kAccuracy, rows.outputs, rows.labels), hit_rate(rows, 1));
  EXPECT_DOUBLE_EQ(value_of(Metric::kTop5, rows.outputs, rows.labels), hit_rate(rows, 5));
}

TEST(Metric, DenseLabelsCountEveryPlace) {
  at::manual_seed(2);
  const at::Tensor outputs = at::randn({4, kClasses, 3, 2});
  const at::Tensor labels = at::randint(kClasses, {4, 3, 2}, at::kLong);
  const double expected = outputs.argmax(1).eq(labels).to(at::kDouble).mean().item<double>();
  EXPECT_DOUBLE_EQ(value_of(Metric::kAccuracy, outputs, labels), expected);
}

TEST(Metric, MaeIsTheMeanAbsoluteError) {
  const at::Tensor outputs = at::tensor({1.0, -2.0, 3.5, 0.0}).view({2, 2});
  const at::Tensor targets = at::tensor({0.5, 2.0, 3.5, -1.0}).view({2, 2});
  EXPECT_DOUBLE_EQ(value_of(Metric::kMae, outputs, targets), (0.5 + 4 + 0 + 1) / 4);
}

/// The mean over classes of 2 tp / (2 tp + fp + fn), by counting for each class anew.
TEST(Metric, MacroF1IsTheMeanOverOccurringClasses) {
  at::manual_seed(3);
  Rows rows;
  rows.labels.masked_fill_(rows.labels.eq(6), 1);
  rows.outputs.select(1, 6).fill_(-100);  // class 6 occurs nowhere
  rows.outputs.select(1, 5).fill_(-100);  // class 5 is never predicted
  rows.labels[0] = kIgnored;
  const at::Tensor predictions = rows.outputs.argmax(1);
  double sum = 0;
  int64_t occurring = 0;
  for (int64_t c = 0; c < kClasses; ++c) {
    int64_t tp = 0, fp = 0, fn = 0;
    for (int64_t i = 1; i < rows.labels.numel(); ++i) {
      const bool labelled = rows.labels[i].item<int64_t>() == c, predicted = predictions[i].item<int64_t>() == c;
      tp += labelled && predicted;
      fp += !labelled && predicted;
      fn += labelled && !predicted;
    }
    if (tp + fp + fn == 0) continue;
    sum += 2.0 * double(tp) / double(2 * tp + fp + fn);
    ++occurring;
  }
  ASSERT_EQ(occurring, kClasses - 1);
  EXPECT_DOUBLE_EQ(value_of(Metric::kMacroF1, rows.outputs, rows.labels), sum / double(occurring));
}

TEST(Metric, StatisticsOfPartsAddUpToTheWhole) {
  at::manual_seed(4);
  const Rows rows;
  for (const Metric metric : {Metric::kAccuracy, Metric::kTop5, Metric::kMacroF1}) {
    std::vector<double> statistics(program::statistics_count(metric, kClasses), 0);
    for (int64_t first = 0; first < 200; first += 50) {
      program::accumulate(metric, rows.outputs.narrow(0, first, 50), rows.labels.narrow(0, first, 50), kIgnored,
                          statistics);
    }
    EXPECT_EQ(program::finish(metric, statistics), value_of(metric, rows.outputs, rows.labels))
        << program::name_of(metric);
  }
}

TEST(Metric, NamesAreReadBackAndUnknownOnesRefused) {
  for (const Metric metric : {Metric::kAccuracy, Metric::kTop5, Metric::kMae, Metric::kMacroF1}) {
    EXPECT_EQ(program::metric_named(program::name_of(metric)), metric);
  }
  try {
    program::metric_named("acuracy");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "metric \"acuracy\" is not known. Use one of: accuracy, top5, mae, macro_f1.");
  }
}

TEST(Metric, LabelOutOfRangeIsRefused) {
  EXPECT_THROW(value_of(Metric::kAccuracy, at::zeros({1, kClasses}), at::full({1}, 8, at::kLong)), std::runtime_error);
}

}  // namespace
}  // namespace tutti::testing
