// Metrics: additive statistics over rows, and the number they come to.
#ifndef TUTTI_SRC_PROGRAM_METRIC_H
#define TUTTI_SRC_PROGRAM_METRIC_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::program {

enum class Metric { kAccuracy, kTop5, kMae, kMacroF1 };

std::string name_of(Metric metric);
/// Throws std::invalid_argument naming the known metrics.
Metric metric_named(const std::string& name);
/// True where a greater value is better.
bool greater_is_better(Metric metric);

/// How many doubles this metric's statistics take, for outputs with `class_count` classes (dimension 1).
int64_t statistics_count(Metric metric, int64_t class_count);

/// Adds the statistics of these rows to `statistics`. Labels equal to `ignore_index` do not count.
void accumulate(Metric metric, const at::Tensor& outputs, const at::Tensor& targets, int64_t ignore_index,
                std::span<double> statistics);

/// The metric's value from the sums of its statistics. Macro F1 is the mean over the classes that occur in labels or
/// predictions (scikit-learn's f1_score(average="macro")).
double finish(Metric metric, std::span<const double> statistics);

}  // namespace tutti::program

#endif
