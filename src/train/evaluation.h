// Loss and metrics over validation and test rows.
#ifndef TUTTI_SRC_TRAIN_EVALUATION_H
#define TUTTI_SRC_TRAIN_EVALUATION_H

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/program/program.h"
#include "src/train/batch_source.h"
#include "src/train/model_memory.h"
#include "src/train/model_spec.h"

namespace tutti::train {

/// A frame for running a model forward in evaluation mode, with its parameters and averaged buffers bound.
program::Frame evaluation_frame(const program::Program& program, const ModelMemory& memory);

/// Evaluates a model with its present parameters and averaged buffers. The rows of each data set are cut into one run
/// per grain, so that lanes and ranks share the work as they share the grains; statistics are sums in double.
class Evaluation {
 public:
  /// `spec` and `memory` must outlive this.
  Evaluation(const ModelSpec& spec, std::shared_ptr<const program::Program> program, const ModelMemory& memory,
             int64_t slot_count);

  /// False when the model has neither validation nor test rows.
  bool has_rows() const { return !parts_.empty(); }

  /// How many numbers compute() returns.
  int64_t statistics_count() const { return statistics_per_part() * static_cast<int64_t>(parts_.size()); }

  /// The statistics of the rows that go with a grain. May be called by several lanes at once, each with its own slot.
  std::vector<double> compute(int64_t grain, int slot);

  /// Evaluates one batch of each data set for its cost only.
  void try_first_batches(int slot);

  /// {"validation": {"loss": .., "accuracy": ..}, "test": {...}} from the sum of all grains' statistics.
  nlohmann::json results(std::span<const double> statistics) const;

  /// The value that decides (early stopping, plateau, best): validation's if there is one, else test's; NaN if absent.
  static double deciding_value(const nlohmann::json& results, const std::string& metric);

 private:
  struct Part {
    std::string name;
    EvaluationSource source;
  };
  void evaluate(const Part& part, RowRange range, program::Frame& frame, std::span<double> statistics) const;
  int64_t statistics_per_part() const;

  const ModelSpec& spec_;
  std::shared_ptr<const program::Program> program_;
  std::vector<Part> parts_;
  std::vector<program::Frame> frames_;
  int64_t class_count_;
};

}  // namespace tutti::train

#endif
