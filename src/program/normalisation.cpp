// Normalisation by ATen's kernels, with the statistics saved for backward.
#include "src/program/normalisation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>

namespace tutti::program {
namespace {

/// The statistics that backward reads: a mean and an inverse deviation for each of `count` groups of values.
int64_t statistics_bytes(int64_t count, const RunSize& size) { return 2 * block_bytes(count * size.element_bytes); }

/// What all three share: an input, a scale, an offset, and two saved tensors of statistics.
class Normalisation : public Instruction {
 public:
  Normalisation(const NodeContext& context, size_t weight_argument)
      : input_(context.value(0)),
        weight_(context.value(weight_argument)),
        bias_(context.value(weight_argument + 1)),
        output_(context.output()),
        targets_{context.target(0), context.target(weight_argument), context.target(weight_argument + 1)},
        mean_slot_(context.new_slot()),
        deviation_slot_(context.new_slot()) {}

  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept{input_};
    if (weight_ != graph::kNoValue) kept.push_back(weight_);
    return kept;
  }

 protected:
  using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

  static std::optional<at::Tensor> optional(const Frame& frame, graph::ValueId id) {
    return id == graph::kNoValue ? std::optional<at::Tensor>() : std::optional<at::Tensor>(frame.values[id]);
  }
  std::array<bool, 3> mask() const { return {targets_[0].needed(), targets_[1].needed(), targets_[2].needed()}; }

  void set_results(Frame& frame, Results results) const {
    frame.values[output_] = std::move(std::get<0>(results));
    if (!frame.training) return;
    frame.saved[mean_slot_] = std::move(std::get<1>(results));
    frame.saved[deviation_slot_] = std::move(std::get<2>(results));
  }
  void deliver_all(Frame& frame, Results gradients) const {
    deliver(frame, targets_[0], std::move(std::get<0>(gradients)));
    deliver(frame, targets_[1], std::move(std::get<1>(gradients)));
    deliver(frame, targets_[2], std::move(std::get<2>(gradients)));
  }

  graph::ValueId input_, weight_, bias_, output_;
  std::array<GradientTarget, 3> targets_;
  int64_t mean_slot_, deviation_slot_;
};

class BatchNorm final : public Normalisation {
 public:
  explicit BatchNorm(const NodeContext& context)
      : Normalisation(context, 1),
        running_mean_(context.value(3)),
        running_variance_(context.value(4)),
        uses_batch_(context.flag(5)),
        momentum_(context.number(6)),
        epsilon_(context.number(7)),
        channels_(context.shape(input_).at(1)),
        input_value_(context.graph().values[input_]),
        description_(described(context.node())) {}

  void forward(Frame& frame) const override {
    const bool uses_batch = uses_batch_ && (frame.training || running_mean_ == graph::kNoValue);
    const at::Tensor& input = frame.values[input_];
    if (uses_batch && input.numel() < 2 * channels_) {
      throw std::runtime_error(
          fmt::format("{}: {} value per channel, expected at least 2 to take statistics of. Use a "
                      "larger batch or fewer grains.",
                      description_, input.numel() / channels_));
    }
    set_results(frame, at::native_batch_norm(input, optional(frame, weight_), optional(frame, bias_),
                                             optional(frame, running_mean_), optional(frame, running_variance_),
                                             uses_batch, momentum_, epsilon_));
  }

  void backward(Frame& frame) const override {
    deliver_all(frame, at::native_batch_norm_backward(frame.gradients[output_], frame.values[input_],
                                                      optional(frame, weight_), optional(frame, running_mean_),
                                                      optional(frame, running_variance_), frame.saved[mean_slot_],
                                                      frame.saved[deviation_slot_], uses_batch_, epsilon_, mask()));
  }

  std::string name() const override { return "batch_norm"; }
  int64_t saved_bytes(const RunSize& size) const override { return statistics_bytes(channels_, size); }
  /// Backward takes a temporary of the input's size.
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    const int64_t temporary = pass == Pass::kBackward ? value_bytes(input_value_, size.rows, size.element_bytes) : 0;
    return temporary + 2 * statistics_bytes(channels_, size);
  }

 private:
  graph::ValueId running_mean_, running_variance_;
  bool uses_batch_;
  double momentum_, epsilon_;
  int64_t channels_;
  graph::Value input_value_;
  std::string description_;
};

class LayerNorm final : public Normalisation {
 public:
  explicit LayerNorm(const NodeContext& context)
      : Normalisation(context, 2),
        shape_(context.integers(1)),
        epsilon_(context.number(4)),
        value_(context.graph().values[input_]) {
    for (const int64_t size : shape_) elements_ *= size;
  }

  void forward(Frame& frame) const override {
    set_results(frame, at::native_layer_norm(frame.values[input_], shape_, optional(frame, weight_),
                                             optional(frame, bias_), epsilon_));
  }

  void backward(Frame& frame) const override {
    deliver_all(frame, at::native_layer_norm_backward(frame.gradients[output_], frame.values[input_], shape_,
                                                      frame.saved[mean_slot_], frame.saved[deviation_slot_],
                                                      optional(frame, weight_), optional(frame, bias_), mask()));
  }

  std::string name() const override { return "layer_norm"; }
  int64_t saved_bytes(const RunSize& size) const override {
    return statistics_bytes(element_count(value_, size.rows) / elements_, size);
  }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return pass == Pass::kBackward ? statistics_bytes(elements_, size) : 0;
  }

 private:
  std::vector<int64_t> shape_;
  double epsilon_;
  graph::Value value_;
  int64_t elements_ = 1;
};

/// Instance norm is the case of one channel to a group.
class GroupNorm final : public Normalisation {
 public:
  struct Settings {
    size_t weight_argument = 0;
    int64_t groups = 1;
    double epsilon = 0;
  };

  GroupNorm(const NodeContext& context, const Settings& settings)
      : Normalisation(context, settings.weight_argument),
        groups_(settings.groups),
        epsilon_(settings.epsilon),
        channels_(context.shape(input_).at(1)),
        first_size_(context.shape(input_).at(0)) {}

  void forward(Frame& frame) const override {
    const at::Tensor input = frame.values[input_].contiguous();
    const int64_t rows = input.size(0);
    set_results(frame, at::native_group_norm(input, optional(frame, weight_), optional(frame, bias_), rows, channels_,
                                             input.numel() / (rows * channels_), groups_, epsilon_));
  }

  void backward(Frame& frame) const override {
    const at::Tensor input = frame.values[input_].contiguous();
    const int64_t rows = input.size(0);
    deliver_all(frame,
                at::native_group_norm_backward(frame.gradients[output_].contiguous(), input, frame.saved[mean_slot_],
                                               frame.saved[deviation_slot_], optional(frame, weight_), rows, channels_,
                                               input.numel() / (rows * channels_), groups_, mask()));
  }

  std::string name() const override { return groups_ == channels_ ? "instance_norm" : "group_norm"; }
  int64_t saved_bytes(const RunSize& size) const override {
    return statistics_bytes(graph::size_at(first_size_, size.rows) * groups_, size);
  }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return pass == Pass::kBackward ? statistics_bytes(graph::size_at(first_size_, size.rows) * channels_, size) : 0;
  }

 private:
  int64_t groups_;
  double epsilon_;
  int64_t channels_, first_size_;
};

}  // namespace

std::unique_ptr<Instruction> make_batch_norm(const NodeContext& context) {
  return std::make_unique<BatchNorm>(context);
}
std::unique_ptr<Instruction> make_layer_norm(const NodeContext& context) {
  return std::make_unique<LayerNorm>(context);
}
std::unique_ptr<Instruction> make_group_norm(const NodeContext& context) {
  return std::make_unique<GroupNorm>(
      context, GroupNorm::Settings{.weight_argument = 2, .groups = context.integer(1), .epsilon = context.number(4)});
}
std::unique_ptr<Instruction> make_native_group_norm(const NodeContext& context) {
  return std::make_unique<GroupNorm>(
      context, GroupNorm::Settings{.weight_argument = 1, .groups = context.integer(6), .epsilon = context.number(7)});
}
std::unique_ptr<Instruction> make_instance_norm(const NodeContext& context) {
  const int64_t channels = context.shape(context.value(0)).at(1);
  return std::make_unique<GroupNorm>(
      context, GroupNorm::Settings{.weight_argument = 1, .groups = channels, .epsilon = context.number(7)});
}

bool instance_norm_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const bool has_statistics = node.arguments[3].kind == graph::Argument::Kind::kValue;
  return !has_statistics && node.arguments[5].constant.isBool() && node.arguments[5].constant.toBool() &&
         graph.values[node.arguments[0].ids.front()].shape.size() > 2;
}

}  // namespace tutti::program
