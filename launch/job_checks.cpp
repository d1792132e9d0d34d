// Checks of a model's specification that concern several keys at once.
#include "launch/job_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "data/sample_order.h"
#include "src/train/batch_source.h"
#include "src/train/parameter_groups.h"

namespace tutti::launch {
namespace {

using Shape = std::vector<int64_t>;

int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies{});
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Equal, or one element each: [1] and a scalar are the same.
bool same_shape(const Shape& a, const Shape& b) { return a == b || (element_count(a) == 1 && element_count(b) == 1); }

/// One check per method; each needs no other to have passed.
class ModelCheck {
 public:
  ModelCheck(const KeyReader& reader, train::ModelSpec& spec, ModelWarnings& warnings)
      : reader_(reader), spec_(spec), warnings_(warnings) {}

  void run() {
    check_grains();
    check_evaluation();
    check_schedule();
    if (spec_.data.train) check_steps();
    if (spec_.graph) check_rules();
    if (spec_.data.train && spec_.graph) check_augmentation();
    if (spec_.data.train && spec_.graph && spec_.graph->fixed_batch) check_fixed_batch(*spec_.graph->fixed_batch);
    if (spec_.data.train && spec_.graph && target() != nullptr) {
      check_target();
      check_batch_norm();
    }
    check_metrics();
  }

 private:
  const data::Field* target() const {
    const auto& fields = spec_.data.train->targets();
    const auto field = std::ranges::find(fields, spec_.data.target, &data::Field::name);
    return field == fields.end() ? nullptr : &*field;
  }

  int64_t training_rows() const {
    const train::ModelData& data = spec_.data;
    const auto part = data.held_out > 0 ? data::Split::Part::kKept : data::Split::Part::kAll;
    return data::Split(data.train->row_count(), data.held_out, data.seed, part).size();
  }

  std::vector<int64_t> evaluated_rows() const {
    using Kind = train::EvaluationSource::Kind;
    std::vector<int64_t> counts;
    for (const Kind kind : {Kind::kValidation, Kind::kTest}) {
      const int64_t rows = train::evaluation_row_count(spec_, kind);
      if (rows > 0) counts.push_back(rows);
    }
    return counts;
  }

  /// Of the largest part that may be evaluated.
  int64_t most_rows() const {
    int64_t most = 1;
    for (const auto& part : {spec_.data.train, spec_.data.validation, spec_.data.test}) {
      if (part) most = std::max(most, part->row_count());
    }
    return most;
  }

  void check_grains() const {
    if (spec_.grains > 0 && !std::has_single_bit(static_cast<uint64_t>(spec_.grains))) {
      reader_.fault("grains", fmt::format("expected a power of two, found {}", spec_.grains));
    } else if (spec_.grains > spec_.batch) {
      reader_.fault("grains", fmt::format("expected at most the batch, {}, found {}", spec_.batch, spec_.grains));
    }
  }

  /// torch.optim.lr_scheduler.OneCycleLR refuses the same.
  void check_schedule() const {
    using Kind = train::OptimizerSpec::Kind;
    const train::OptimizerSpec& optimizer = spec_.optimizer;
    if (spec_.schedule.kind != train::ScheduleSpec::Kind::kOneCycle || !spec_.schedule.cycle_momentum) return;
    const bool adam = optimizer.kind == Kind::kAdam || optimizer.kind == Kind::kAdamW;
    if (adam || optimizer.momentum > 0) return;
    reader_.fault("schedule",
                  "one_cycle: expected an optimizer with momentum to move, found none; give it `momentum`, or "
                  "set `cycle_momentum: false`");
  }

  void check_steps() {
    const int64_t rows = training_rows();
    if (spec_.batch < 1 || rows < 1) return;
    spec_.evaluation_batch = std::min(spec_.evaluation_batch, most_rows());
    if (spec_.drop_last && rows < spec_.batch) {
      reader_.fault("batch",
                    fmt::format("expected at most the {} training rows with `drop_last`, found {}", rows, spec_.batch));
      return;
    }
    if (spec_.grains > rows) {
      reader_.fault("grains", fmt::format("expected at most the {} training rows, found {}", rows, spec_.grains));
    }
    if (rows < spec_.batch) {
      warnings_.add(reader_, "batch", fmt::format("a batch of {} is more than the {} training rows", spec_.batch, rows),
                    spec_.name);
      spec_.batch = rows;  // what memory is planned for
    }
    const int64_t batches = spec_.drop_last ? rows / spec_.batch : (rows + spec_.batch - 1) / spec_.batch;
    spec_.accumulate = std::min(spec_.accumulate, batches);  // a step ends with its epoch
    if (spec_.max_steps && !reader_.has("epochs") && batches > 0) {
      spec_.epochs = (*spec_.max_steps * spec_.accumulate + batches - 1) / batches;
    }
  }

  void check_augmentation() const {
    const data::Augmentation& augmentation = spec_.data.augmentation;
    const auto& fields = spec_.data.train->inputs();
    const auto field = std::ranges::find(fields, spec_.data.inputs.front(), &data::Field::name);
    if (!augmentation.any() || field == fields.end()) return;
    if (spec_.data.inputs.size() > 1) {
      return reader_.fault("data", fmt::format("`augment` of data set `{}`: expected a model of one input, found {}",
                                               spec_.data.name, spec_.data.inputs.size()));
    }
    const auto refuse = [&](std::string_view expected) {
      reader_.fault("data", fmt::format("`augment` of data set `{}`: expected {}, found input `{}` of {}",
                                        spec_.data.name, expected, field->name, data::describe(*field)));
    };
    const graph::Value& input = spec_.graph->values.at(static_cast<size_t>(spec_.graph->inputs.front()));
    if (input.type == at::kLong) return refuse("quantities; an embedding takes its indices as they are");
    if (!augmentation.flip && augmentation.crop == 0) return;
    const Shape& shape = field->shape;
    if (shape.size() < 2) return refuse("images, rows of two dimensions or more, for flip and crop");
    const int64_t side = std::min(shape.back(), shape[shape.size() - 2]);
    if (augmentation.crop >= side) {
      refuse(fmt::format("a crop below the image's {} pixels instead of {}", side, augmentation.crop));
    }
  }

  void check_rules() const {
    const auto is_empty = [](const train::ParameterRule& rule) { return rule.pattern.empty(); };
    if (std::ranges::any_of(spec_.parameter_rules, is_empty)) return;
    try {
      train::resolve(*spec_.graph, spec_.parameter_rules, spec_.optimizer);
    } catch (const std::invalid_argument& error) {
      reader_.fault("parameters", error.what());
    }
  }

  void check_target() const {
    const data::Field& field = *target();
    const Shape& outputs = spec_.graph->values.at(static_cast<size_t>(spec_.graph->outputs.front())).shape;
    const Shape row(outputs.begin() + 1, outputs.end());
    if (spec_.loss.integer_targets()) {
      check_classes(field, row);
    } else if (!same_shape(row, field.shape)) {
      reader_.fault("loss",
                    fmt::format("expected outputs of the target's shape: outputs have {} per row, target `{}` has {}",
                                shape_text(row), field.name, shape_text(field.shape)));
    }
    const size_t weights = spec_.loss.positive_weights.size();
    if (weights > 1 && (row.empty() || weights != static_cast<size_t>(row.back()))) {
      reader_.fault("loss", fmt::format("expected one of positive_weights for all outputs or one per output, found {} "
                                        "for outputs of {}",
                                        weights, shape_text(row)));
    }
  }

  /// Cross-entropy: outputs [classes, ...], target [...] of class numbers.
  void check_classes(const data::Field& field, const Shape& row) const {
    if (!data::is_integer(field.type)) {
      reader_.fault(
          "loss",
          fmt::format("cross_entropy expects an integer target, found {} in `{}`; use mse, or store class numbers",
                      data::name_of(field.type), field.name));
      return;
    }
    if (row.empty()) {
      reader_.fault(network_key(),
                    "cross_entropy expects one output per class, found outputs without a class dimension");
      return;
    }
    const int64_t classes = row.front();
    if (classes < field.class_count) {
      reader_.fault(network_key(),
                    fmt::format("the last layer gives {} outputs, target `{}` has {} classes: make it {}", classes,
                                field.name, field.class_count, field.class_count));
    }
    const Shape positions(row.begin() + 1, row.end());
    if (!same_shape(positions, field.shape)) {
      reader_.fault("loss",
                    fmt::format("cross_entropy expects a target of {} per row for outputs of {}, found {} in `{}`",
                                shape_text(positions), shape_text(row), shape_text(field.shape), field.name));
    }
    const size_t weights = spec_.loss.class_weights.size();
    if (weights != 0 && weights != static_cast<size_t>(classes)) {
      reader_.fault("loss", fmt::format("expected {} class_weights, one per output, found {}", classes, weights));
    }
    if (weights != 0 && std::ranges::all_of(spec_.loss.class_weights, [](double weight) { return weight == 0; })) {
      reader_.fault("loss", "expected one of class_weights greater than 0, found all 0: no row would count");
    }
    const bool top5 = std::ranges::find(spec_.metrics, program::Metric::kTop5) != spec_.metrics.end();
    if (top5 && classes < 5) {
      reader_.fault("metrics", fmt::format("top5 expects at least 5 outputs, found {}", classes));
    }
  }

  /// Every run of the graph has this many rows.
  void check_fixed_batch(int64_t rows) {
    constexpr std::string_view kAdvice = "; or export the model with a dynamic batch (docs/import.md)";
    if (spec_.batch != rows * spec_.grains) {
      reader_.fault(
          "batch", fmt::format("the exported graph runs {} rows at a time: expected {} for {} grains, found {}{}", rows,
                               rows * spec_.grains, spec_.grains, spec_.batch, kAdvice));
      return;
    }
    if (!spec_.drop_last && training_rows() % spec_.batch != 0) {
      reader_.fault("drop_last",
                    fmt::format("the exported graph runs {} rows at a time: expected `true`, since the last "
                                "batch of {} training rows is short{}",
                                rows, training_rows(), kAdvice));
    }
    spec_.evaluation_batch = rows;
    for (const int64_t evaluated : evaluated_rows()) {
      if (evaluated % spec_.batch == 0) continue;
      reader_.fault("data", fmt::format("the exported graph runs {} rows at a time: expected a multiple of {} rows to "
                                        "evaluate on, found {}{}",
                                        rows, spec_.batch, evaluated, kAdvice));
    }
  }

  std::string_view network_key() const {
    return reader_.has("graph") ? "graph" : reader_.has("layers") ? "layers" : "zoo";
  }

  /// Statistics over fewer than two values are no statistics (torch refuses them too).
  void check_batch_norm() const {
    if (spec_.batch < 1 || spec_.grains < 1) return;
    const int64_t short_batch = spec_.drop_last ? 0 : training_rows() % spec_.batch;
    for (const graph::Node& node : spec_.graph->nodes) {
      if (node.target != "aten::batch_norm") continue;
      const Shape& input = spec_.graph->values.at(static_cast<size_t>(node.arguments.front().ids.front())).shape;
      const int64_t per_row = element_count({input.begin() + 2, input.end()});
      const auto too_few = [&](int64_t batch) { return std::max<int64_t>(1, batch / spec_.grains) * per_row < 2; };
      if (too_few(spec_.batch)) {
        reader_.fault("grains",
                      fmt::format("batch norm ({}) needs at least 2 rows per grain, found {} rows in {} grains",
                                  node.label, spec_.batch, spec_.grains));
        return;
      }
      if (short_batch > 0 && too_few(short_batch)) {
        reader_.fault(
            "batch", fmt::format("batch norm ({}) needs at least 2 rows per grain, found a last batch of {} rows in {} "
                                 "grains; set `drop_last: true` or another batch",
                                 node.label, short_batch, spec_.grains));
        return;
      }
    }
  }

  void check_metrics() const {
    for (const program::Metric metric : spec_.metrics) {
      const bool classifies = metric != program::Metric::kMae;
      if (classifies == spec_.loss.integer_targets()) continue;
      reader_.fault("metrics", fmt::format("{} needs {}", program::name_of(metric),
                                           classifies ? "loss cross_entropy" : "a loss other than cross_entropy"));
    }
  }

  void check_metric_name(std::string_view key, const std::string& name) const {
    std::vector<std::string> known{"loss"};
    for (const program::Metric metric : spec_.metrics) known.push_back(program::name_of(metric));
    if (std::ranges::find(known, name) != known.end()) return;
    reader_.fault(
        key, fmt::format("the model does not measure `{}`; {} (see `metrics`)", name, expected_one_of(name, known)));
  }

  /// What reads evaluations needs rows to evaluate on.
  void check_evaluation() const {
    const bool plateau = spec_.schedule.kind == train::ScheduleSpec::Kind::kPlateau;
    const std::string& best = spec_.checkpoint.best;
    if (spec_.early_stopping) check_metric_name("early_stopping", spec_.early_stopping->metric);
    if (!best.empty()) check_metric_name("checkpoint", best);
    if (!spec_.data.train || spec_.data.validation || spec_.data.test) return;
    const std::string_view message = "needs rows to evaluate on: give the data set `validation`, `held_out` or `test`";
    if (spec_.early_stopping) reader_.fault("early_stopping", message);
    if (!best.empty()) reader_.fault("checkpoint", message);
    if (plateau) reader_.fault("schedule", message);
  }

  const KeyReader& reader_;
  train::ModelSpec& spec_;
  ModelWarnings& warnings_;
};

}  // namespace

void check_model(const KeyReader& reader, train::ModelSpec& spec, ModelWarnings& warnings) {
  ModelCheck(reader, spec, warnings).run();
}

bool is_valid_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 128 && name.front() != '.' && std::ranges::all_of(name, allowed);
}

}  // namespace tutti::launch
