#include "src/train/batch_source.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace tutti::train {

namespace {

/// No index lies outside [0, limit) and is accepted all the same.
constexpr int64_t kNoneIgnored = 0;

const data::Field& field_named(const std::vector<data::Field>& fields, const std::string& name, const char* kind) {
  if (name.empty() && fields.size() == 1) return fields.front();
  std::vector<std::string> known;
  for (const data::Field& field : fields) {
    if (field.name == name) return field;
    known.push_back(field.name);
  }
  throw data::DataError(fmt::format("expected {} `{}` in the data set, found {}; name one with the model's key `{}`",
                                    kind, name, fmt::join(known, ", "), kind));
}

std::vector<int64_t> batch_shape(size_t rows, const std::vector<int64_t>& row_shape) {
  std::vector<int64_t> shape{static_cast<int64_t>(rows)};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

const data::DataSet& evaluated(const ModelSpec& spec, EvaluationSource::Kind kind) {
  return kind == EvaluationSource::Kind::kTest ? *spec.data.test : *spec.data.validation;
}

data::Split evaluation_split(const ModelSpec& spec, EvaluationSource::Kind kind) {
  const int64_t rows = evaluated(spec, kind).row_count();
  const bool held_out = kind == EvaluationSource::Kind::kValidation && spec.data.held_out > 0;
  return held_out ? data::Split(rows, spec.data.held_out, spec.data.seed, data::Split::Part::kHeldOut)
                  : data::Split(rows, 0, spec.data.seed, data::Split::Part::kAll);
}

data::Split training_split(const ModelSpec& spec) {
  const auto part = spec.data.held_out > 0 ? data::Split::Part::kKept : data::Split::Part::kAll;
  return {spec.data.train->row_count(), spec.data.held_out, spec.data.seed, part};
}

/// One above the greatest index that every embedding fed by `input` holds; the greatest integer where there is none.
int64_t index_limit(const graph::Graph& graph, graph::ValueId input) {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const graph::Node& node : graph.nodes) {
    if (node.target != "aten::embedding" || node.arguments[1].ids.front() != input) continue;
    const graph::ValueId weight = node.arguments[0].ids.front();
    limit = std::min(limit, graph.values[static_cast<size_t>(weight)].shape.front());
  }
  return limit;
}

/// The target's rows in the shape that the loss compares with the outputs, where they have as many elements: a column
/// of numbers fits outputs of one number, whether either is a scalar or a list of one.
std::vector<int64_t> target_row_shape(const data::Field& target, const std::vector<int64_t>& outputs,
                                      bool integer_target) {
  // Class numbers have no dimension for the classes.
  const auto first = std::min<size_t>(outputs.size(), integer_target ? 2 : 1);
  std::vector<int64_t> shape(outputs.begin() + static_cast<std::ptrdiff_t>(first), outputs.end());
  const auto elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return elements == target.row_elements() ? shape : target.shape;
}

}  // namespace

FieldReader::FieldReader(const ModelSpec& spec, std::shared_ptr<const data::DataSet> data, Targets targets)
    : data_(std::move(data)),
      integer_target_(spec.loss.integer_targets()),
      ignore_index_(spec.loss.ignore_index),
      precision_(spec.double_precision ? at::kDouble : at::kFloat) {
  const graph::Graph& graph = *spec.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string name = i < spec.data.inputs.size() ? spec.data.inputs[i] : "";
    data::Field field = field_named(data_->inputs(), name, "input");
    // Evaluation rows are normalised as the training rows are, not by their own statistics.
    const data::Field& trained = field_named(spec.data.train->inputs(), name, "input");
    field.mean = trained.mean;
    field.deviation = trained.deviation;
    if (!spec.data.normalise) field.mean.clear(), field.deviation.clear();
    values_.push_back(graph.values[static_cast<size_t>(graph.inputs[i])]);
    index_limits_.push_back(index_limit(graph, graph.inputs[i]));
    const auto expected = batch_shape(0, field.shape);
    if (!std::equal(values_.back().shape.begin() + 1, values_.back().shape.end(), expected.begin() + 1,
                    expected.end())) {
      throw data::DataError(fmt::format("input `{}`: expected rows of shape [{}], found [{}]", field.name,
                                        fmt::join(values_.back().shape.begin() + 1, values_.back().shape.end(), ", "),
                                        fmt::join(field.shape, ", ")));
    }
    inputs_.push_back(std::move(field));
  }
  if (targets == Targets::kNeeded) target_ = field_named(data_->targets(), spec.data.target, "target");
  const auto& output = graph.values[static_cast<size_t>(graph.outputs.front())].shape;
  class_count_ = output.size() > 1 ? output[1] : 1;
  if (target_) target_shape_ = target_row_shape(*target_, output, integer_target_);
}

at::Tensor FieldReader::gather_integers(const data::Field& field, const std::vector<int64_t>& row_shape,
                                        std::span<const int64_t> rows, int64_t limit, int64_t ignored) const {
  at::Tensor out = at::empty(batch_shape(rows.size(), row_shape), at::kLong);
  data_->gather_integers(field, rows, 0, limit, ignored, {out.data_ptr<int64_t>(), static_cast<size_t>(out.numel())});
  return out;
}

at::Tensor FieldReader::gather_reals(const data::Field& field, const std::vector<int64_t>& row_shape,
                                     std::span<const int64_t> rows, const data::Augmentation& augmentation,
                                     data::AugmentationKey key) const {
  at::Tensor out = at::empty(batch_shape(rows.size(), row_shape), at::TensorOptions(precision_));
  const auto count = static_cast<size_t>(out.numel());
  if (precision_ == at::kDouble) {
    data_->gather(field, rows, augmentation, key, std::span<double>(out.data_ptr<double>(), count));
  } else {
    data_->gather(field, rows, augmentation, key, std::span<float>(out.data_ptr<float>(), count));
  }
  return out;
}

Batch FieldReader::gather(std::span<const int64_t> rows, const data::Augmentation& augmentation,
                          data::AugmentationKey key) const {
  Batch batch;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const data::Field& field = inputs_[i];
    batch.inputs.push_back(values_[i].type == at::kLong
                               ? gather_integers(field, field.shape, rows, index_limits_[i], kNoneIgnored)
                               : gather_reals(field, field.shape, rows, augmentation, key));
  }
  if (target_) {
    batch.targets = integer_target_ ? gather_integers(*target_, target_shape_, rows, class_count_, ignore_index_)
                                    : gather_reals(*target_, target_shape_, rows, {}, {});
  }
  return batch;
}

void FieldReader::prefetch(int64_t begin, int64_t end) const {
  for (const data::Field& field : inputs_) data_->prefetch(field, begin, end);
  if (target_) data_->prefetch(*target_, begin, end);
}

int64_t batches_per_epoch(const ModelSpec& spec) {
  const int64_t rows = training_split(spec).size();
  return spec.drop_last ? rows / spec.batch : (rows + spec.batch - 1) / spec.batch;
}

TrainingSource::TrainingSource(const ModelSpec& spec)
    : reader_(spec, spec.data.train),
      split_(training_split(spec)),
      order_(split_.size(), spec.order, spec.data.seed, spec.seed),
      read_ahead_(*spec.data.train, split_, order_, spec.epochs),
      augmentation_(spec.data.augmentation),
      augmentation_key_(data::RandomKey::of(spec.seed, "augmentation")),
      batch_rows_(spec.batch),
      grain_count_(spec.grains),
      batches_(train::batches_per_epoch(spec)) {
  if (batches_ == 0) {
    throw data::DataError(
        fmt::format("expected at least one batch of {} rows, found {} training rows", spec.batch, split_.size()));
  }
}

int64_t TrainingSource::rows_in_batch(int64_t batch) const {
  return std::min(batch_rows_, split_.size() - batch * batch_rows_);
}

RowRange TrainingSource::grain_rows(int64_t batch, int64_t grain) const {
  return slice(rows_in_batch(batch), grain, grain_count_);
}

Batch TrainingSource::gather(int64_t epoch, int64_t batch, int64_t grain) const {
  const RowRange range = grain_rows(batch, grain);
  std::vector<int64_t> rows;
  order_.rows(epoch, batch * batch_rows_ + range.begin, range.count(), rows);
  for (int64_t& row : rows) row = split_.row(row);
  Batch gathered = reader_.gather(rows, augmentation_, {augmentation_key_, static_cast<uint32_t>(epoch)});
  const int64_t begin = batch * batch_rows_;
  for (const auto& [first, last] : read_ahead_.rows_after(epoch, begin, begin + rows_in_batch(batch))) {
    reader_.prefetch(first, last);
  }
  return gathered;
}

int64_t training_window_bytes(const ModelSpec& spec) {
  const data::Split split = training_split(spec);
  return shuffle_window_bytes(*spec.data.train, split, {split.size(), spec.order, spec.data.seed, spec.seed});
}

EvaluationSource::EvaluationSource(const ModelSpec& spec, Kind kind)
    : reader_(spec, kind == Kind::kTest ? spec.data.test : spec.data.validation),
      split_(evaluation_split(spec, kind)) {}

Batch EvaluationSource::gather(RowRange range) const {
  std::vector<int64_t> rows;
  for (int64_t index = range.begin; index < range.end; ++index) rows.push_back(split_.row(index));
  return reader_.gather(rows, {}, {});
}

int64_t evaluation_row_count(const ModelSpec& spec, EvaluationSource::Kind kind) {
  const auto& set = kind == EvaluationSource::Kind::kTest ? spec.data.test : spec.data.validation;
  return set ? evaluation_split(spec, kind).size() : 0;
}

}  // namespace tutti::train
