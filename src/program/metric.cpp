// Metrics. Statistics: accuracy and top-5 (hits, rows), MAE (sum of errors, elements), macro F1 (true positives,
// labels, predictions for each class).
#include "src/program/metric.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

namespace tutti::program {
namespace {

constexpr int64_t kTop = 5;

struct Name {
  Metric metric;
  const char* text;
};
constexpr std::array kNames{Name{Metric::kAccuracy, "accuracy"}, Name{Metric::kTop5, "top5"}, Name{Metric::kMae, "mae"},
                            Name{Metric::kMacroF1, "macro_f1"}};

/// A place of the outputs [rows, classes, ...]: its class scores and its label.
struct Place {
  const double* scores;
  int64_t stride, classes, label;

  double score(int64_t c) const { return scores[c * stride]; }
  /// The first class with the greatest score. A score that is not a number counts as the greatest, as in PyTorch.
  int64_t prediction() const {
    int64_t best = 0;
    for (int64_t c = 1; c < classes && !std::isnan(score(best)); ++c) {
      if (score(c) > score(best) || std::isnan(score(c))) best = c;
    }
    return best;
  }
  /// How many classes rank before the label; ties go to the lower class.
  int64_t rank_of_label() const {
    int64_t rank = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (score(c) > score(label) || (c < label && score(c) == score(label))) ++rank;
    }
    return rank;
  }
};

void check_labels(const at::Tensor& outputs, const at::Tensor& targets) {
  const bool fits =
      outputs.dim() >= 2 && targets.scalar_type() == at::kLong && targets.numel() * outputs.size(1) == outputs.numel();
  if (fits) return;
  throw std::runtime_error(fmt::format(
      "metric: outputs [{}] and targets {} [{}], expected [rows, classes, ...] and "
      "int64 [rows, ...]. Use mae for targets that are no classes.",
      fmt::join(outputs.sizes(), ", "), c10::toString(targets.scalar_type()), fmt::join(targets.sizes(), ", ")));
}

template <typename Visit>
void for_each_label(const at::Tensor& outputs, const at::Tensor& targets, int64_t ignore_index, Visit visit) {
  check_labels(outputs, targets);
  const at::Tensor scores = outputs.to(at::kDouble).contiguous();
  const at::Tensor labels = targets.contiguous();
  const int64_t classes = outputs.size(1);
  const int64_t inner = outputs.size(0) == 0 ? 0 : labels.numel() / outputs.size(0);
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const int64_t label = labels.const_data_ptr<int64_t>()[i];
    if (label == ignore_index) continue;
    if (label < 0 || label >= classes) {
      throw std::runtime_error(
          fmt::format("metric: label {}, expected 0 to {}. Correct the data.", label, classes - 1));
    }
    visit(Place{scores.const_data_ptr<double>() + (i / inner) * classes * inner + i % inner, inner, classes, label});
  }
}

void accumulate_mae(const at::Tensor& outputs, const at::Tensor& targets, std::span<double> statistics) {
  if (outputs.sizes() != targets.sizes()) {
    throw std::runtime_error(fmt::format("mae: targets have shape [{}], expected the outputs' [{}]. Check the data.",
                                         fmt::join(targets.sizes(), ", "), fmt::join(outputs.sizes(), ", ")));
  }
  const at::Tensor errors = (outputs.to(at::kDouble) - targets.to(at::kDouble)).abs();
  statistics[0] += errors.sum().item<double>();
  statistics[1] += static_cast<double>(outputs.numel());
}

double macro_f1(std::span<const double> statistics) {
  double sum = 0, occurring = 0;
  for (size_t c = 0; c + 2 < statistics.size(); c += 3) {
    const double hits = statistics[c], labels = statistics[c + 1], predictions = statistics[c + 2];
    if (labels + predictions == 0) continue;
    sum += 2 * hits / (labels + predictions);
    ++occurring;
  }
  return occurring == 0 ? std::nan("") : sum / occurring;
}

}  // namespace

std::string name_of(Metric metric) {
  for (const Name& name : kNames) {
    if (name.metric == metric) return name.text;
  }
  throw std::logic_error("name_of: unknown metric");
}

Metric metric_named(const std::string& name) {
  std::string known;
  for (const Name& candidate : kNames) {
    if (name == candidate.text) return candidate.metric;
    known += (known.empty() ? "" : ", ") + std::string(candidate.text);
  }
  throw std::invalid_argument(fmt::format("metric \"{}\" is not known. Use one of: {}.", name, known));
}

bool greater_is_better(Metric metric) { return metric != Metric::kMae; }

int64_t statistics_count(Metric metric, int64_t class_count) {
  return metric == Metric::kMacroF1 ? 3 * class_count : 2;
}

void accumulate(Metric metric, const at::Tensor& outputs, const at::Tensor& targets, int64_t ignore_index,
                std::span<double> statistics) {
  switch (metric) {
    case Metric::kMae:
      accumulate_mae(outputs, targets, statistics);
      return;
    case Metric::kAccuracy:
    case Metric::kTop5:
      for_each_label(outputs, targets, ignore_index, [&](const Place& place) {
        const bool hit = metric == Metric::kAccuracy ? place.prediction() == place.label : place.rank_of_label() < kTop;
        statistics[0] += hit ? 1 : 0;
        statistics[1] += 1;
      });
      return;
    case Metric::kMacroF1:
      for_each_label(outputs, targets, ignore_index, [&](const Place& place) {
        const int64_t predicted = place.prediction();
        statistics[3 * place.label] += predicted == place.label ? 1 : 0;
        statistics[3 * place.label + 1] += 1;
        statistics[3 * predicted + 2] += 1;
      });
      return;
  }
}

double finish(Metric metric, std::span<const double> statistics) {
  if (metric == Metric::kMacroF1) return macro_f1(statistics);
  return statistics[0] / statistics[1];
}

}  // namespace tutti::program
