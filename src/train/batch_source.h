// The rows a model trains on and is evaluated on, gathered as tensors.
#ifndef TUTTI_SRC_TRAIN_BATCH_SOURCE_H
#define TUTTI_SRC_TRAIN_BATCH_SOURCE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/data_set.h"
#include "data/sample_order.h"
#include "src/train/model_spec.h"
#include "src/train/read_ahead.h"

namespace tutti::train {

/// A range of rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

/// Slice number `part` of `parts` of `count` rows: [floor(part count / parts), floor((part + 1) count / parts)).
inline RowRange slice(int64_t count, int64_t part, int64_t parts) {
  return {part * count / parts, (part + 1) * count / parts};
}

/// The rows of one grain as tensors.
struct Batch {
  std::vector<at::Tensor> inputs;  ///< by graph input: [rows, ...]
  at::Tensor targets;              ///< [rows, ...] in the shape the loss expects; undefined where the reader has none
};

/// Reads fields of one data set for one model.
class FieldReader {
 public:
  enum class Targets { kNeeded, kNone };

  /// Throws data::DataError naming the fields there are, when one the model needs is absent or has another shape than
  /// the graph's input. With Targets::kNone the data need no target, and batches have none.
  FieldReader(const ModelSpec& spec, std::shared_ptr<const data::DataSet> data, Targets targets = Targets::kNeeded);

  /// Gathers rows (of the data set). Allocates from ATen's current allocator. Throws data::DataError with file, row and
  /// value at a label that is no class, or an index that is beyond its embedding.
  Batch gather(std::span<const int64_t> rows, const data::Augmentation& augmentation, data::AugmentationKey key) const;

  /// Tells the data set that rows [begin, end) of these fields are wanted soon.
  void prefetch(int64_t begin, int64_t end) const;

 private:
  at::Tensor gather_integers(const data::Field& field, const std::vector<int64_t>& row_shape,
                             std::span<const int64_t> rows, int64_t limit, int64_t ignored) const;
  at::Tensor gather_reals(const data::Field& field, const std::vector<int64_t>& row_shape,
                          std::span<const int64_t> rows, const data::Augmentation& augmentation,
                          data::AugmentationKey key) const;

  std::shared_ptr<const data::DataSet> data_;
  std::vector<data::Field> inputs_;
  std::vector<graph::Value> values_;
  std::vector<int64_t> index_limits_;  // by input: indices lie in [0, limit)
  std::optional<data::Field> target_;
  std::vector<int64_t> target_shape_;  // of a row, as the outputs'
  bool integer_target_;
  int64_t class_count_ = 0;
  int64_t ignore_index_ = 0;
  at::ScalarType precision_;
};

/// The batches of an epoch over a model's training rows; 0 where they are fewer than a whole batch and `drop_last`.
int64_t batches_per_epoch(const ModelSpec& spec);

/// The training batches of a model: which rows each grain of each batch has is a pure function (SampleOrder).
class TrainingSource {
 public:
  explicit TrainingSource(const ModelSpec& spec);

  int64_t row_count() const { return split_.size(); }
  int64_t batches_per_epoch() const { return batches_; }
  int64_t rows_in_batch(int64_t batch) const;

  /// Rows of the batch that belong to a grain (relative to the batch).
  RowRange grain_rows(int64_t batch, int64_t grain) const;

  Batch gather(int64_t epoch, int64_t batch, int64_t grain) const;

 private:
  FieldReader reader_;
  data::Split split_;
  data::SampleOrder order_;
  ReadAhead read_ahead_;
  data::Augmentation augmentation_;
  data::RandomKey augmentation_key_;
  int64_t batch_rows_, grain_count_, batches_;
};

/// What shuffle_window_bytes() says of a model's training rows.
int64_t training_window_bytes(const ModelSpec& spec);

/// Rows for evaluation, in order, not augmented.
class EvaluationSource {
 public:
  enum class Kind { kValidation, kTest };
  EvaluationSource(const ModelSpec& spec, Kind kind);

  int64_t row_count() const { return split_.size(); }
  Batch gather(RowRange range) const;

 private:
  FieldReader reader_;
  data::Split split_;
};

/// The rows of a model's validation or test data; 0 where it has none.
int64_t evaluation_row_count(const ModelSpec& spec, EvaluationSource::Kind kind);

}  // namespace tutti::train

#endif
