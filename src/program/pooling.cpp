// Pooling by ATen's kernels. One dimension runs as two, with a height of 1.
#include "src/program/pooling.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace tutti::program {
namespace {

/// How many dimensions the windows have, from the node's rank: [batch, channels, ...].
int64_t spatial_dimensions(const NodeContext& context) {
  const int64_t dimensions = context.rank(context.value(0)) - 2;
  if (dimensions < 1 || dimensions > 3) {
    throw graph::GraphError(
        fmt::format("{}: the input has {} dimensions, expected [batch, channels, ...] with 3 to 5. "
                    "Reshape it before the layer.",
                    described(context.node()), dimensions + 2));
  }
  return dimensions;
}

/// One spatial dimension is given a height of 1.
at::Tensor with_height(const at::Tensor& tensor, int64_t dimensions) {
  return dimensions == 1 ? tensor.unsqueeze(2) : tensor;
}
at::Tensor without_height(at::Tensor tensor, int64_t dimensions) {
  return dimensions == 1 ? tensor.squeeze(2) : tensor;
}

/// A window's numbers, as the kernel of two or three dimensions takes them.
std::vector<int64_t> window(const NodeContext& context, size_t argument, int64_t dimensions, int64_t height) {
  std::vector<int64_t> numbers = context.integers(argument, static_cast<size_t>(dimensions));
  if (dimensions == 1) numbers.insert(numbers.begin(), height);
  return numbers;
}

/// The stride, which is the kernel's size where it is left out.
std::vector<int64_t> window_stride(const NodeContext& context, int64_t dimensions) {
  const bool is_absent = context.constant(2).isIntList() && context.integers(2).empty();
  return window(context, is_absent ? 1 : 2, dimensions, 1);
}

/// What the three families of pooling share.
class Pool : public Instruction {
 public:
  explicit Pool(const NodeContext& context)
      : dimensions_(spatial_dimensions(context)),
        input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {}

  std::string name() const override { return name_; }
  std::vector<graph::ValueId> kept_values() const override { return {input_}; }

 protected:
  at::Tensor input(const Frame& frame) const { return with_height(frame.values[input_], dimensions_); }
  at::Tensor output_gradient(const Frame& frame) const { return with_height(frame.gradients[output_], dimensions_); }
  void set_output(Frame& frame, at::Tensor output) const {
    frame.values[output_] = without_height(std::move(output), dimensions_);
  }
  void deliver_input(Frame& frame, at::Tensor gradient) const {
    deliver(frame, target_, without_height(std::move(gradient), dimensions_));
  }

  int64_t dimensions_;
  graph::ValueId input_, output_;
  GradientTarget target_;

 private:
  std::string name_;
};

class MaxPool final : public Pool {
 public:
  explicit MaxPool(const NodeContext& context)
      : Pool(context),
        kernel_(window(context, 1, dimensions_, 1)),
        stride_(window_stride(context, dimensions_)),
        padding_(window(context, 3, dimensions_, 0)),
        dilation_(window(context, 4, dimensions_, 1)),
        ceil_mode_(context.flag(5)),
        slot_(context.new_slot()),
        output_value_(context.graph().values[output_]) {}

  void forward(Frame& frame) const override {
    auto [output, places] =
        dimensions_ == 3 ? at::max_pool3d_with_indices(input(frame), kernel_, stride_, padding_, dilation_, ceil_mode_)
                         : at::max_pool2d_with_indices(input(frame), kernel_, stride_, padding_, dilation_, ceil_mode_);
    set_output(frame, std::move(output));
    if (frame.training) frame.saved[slot_] = std::move(places);
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = output_gradient(frame);
    deliver_input(frame, dimensions_ == 3
                             ? at::max_pool3d_with_indices_backward(gradient, input(frame), kernel_, stride_, padding_,
                                                                    dilation_, ceil_mode_, frame.saved[slot_])
                             : at::max_pool2d_with_indices_backward(gradient, input(frame), kernel_, stride_, padding_,
                                                                    dilation_, ceil_mode_, frame.saved[slot_]));
  }

  int64_t saved_bytes(const RunSize& size) const override {
    return block_bytes(element_count(output_value_, size.rows) * static_cast<int64_t>(sizeof(int64_t)));
  }

 private:
  std::vector<int64_t> kernel_, stride_, padding_, dilation_;
  bool ceil_mode_;
  int64_t slot_;
  graph::Value output_value_;
};

class AveragePool final : public Pool {
 public:
  explicit AveragePool(const NodeContext& context)
      : Pool(context),
        kernel_(window(context, 1, dimensions_, 1)),
        stride_(window_stride(context, dimensions_)),
        padding_(window(context, 3, dimensions_, 0)),
        ceil_mode_(context.flag(4)),
        count_include_pad_(context.flag(5)) {
    if (dimensions_ > 1 && !context.constant(6).isNone()) divisor_ = context.integer(6);
  }

  void forward(Frame& frame) const override {
    set_output(frame, dimensions_ == 3 ? at::avg_pool3d(input(frame), kernel_, stride_, padding_, ceil_mode_,
                                                        count_include_pad_, divisor_)
                                       : at::avg_pool2d(input(frame), kernel_, stride_, padding_, ceil_mode_,
                                                        count_include_pad_, divisor_));
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = output_gradient(frame);
    deliver_input(frame, dimensions_ == 3 ? at::avg_pool3d_backward(gradient, input(frame), kernel_, stride_, padding_,
                                                                    ceil_mode_, count_include_pad_, divisor_)
                                          : at::avg_pool2d_backward(gradient, input(frame), kernel_, stride_, padding_,
                                                                    ceil_mode_, count_include_pad_, divisor_));
  }

 private:
  std::vector<int64_t> kernel_, stride_, padding_;
  bool ceil_mode_, count_include_pad_;
  std::optional<int64_t> divisor_;
};

class AdaptiveAveragePool final : public Pool {
 public:
  explicit AdaptiveAveragePool(const NodeContext& context)
      : Pool(context), output_size_(window(context, 1, dimensions_, 1)) {}

  void forward(Frame& frame) const override {
    set_output(frame, dimensions_ == 3 ? at::_adaptive_avg_pool3d(input(frame), output_size_)
                                       : at::_adaptive_avg_pool2d(input(frame), output_size_));
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = output_gradient(frame);
    deliver_input(frame, dimensions_ == 3 ? at::_adaptive_avg_pool3d_backward(gradient, input(frame))
                                          : at::_adaptive_avg_pool2d_backward(gradient, input(frame)));
  }

 private:
  std::vector<int64_t> output_size_;
};

}  // namespace

std::unique_ptr<Instruction> make_max_pool(const NodeContext& context) { return std::make_unique<MaxPool>(context); }

std::unique_ptr<Instruction> make_average_pool(const NodeContext& context) {
  return std::make_unique<AveragePool>(context);
}

std::unique_ptr<Instruction> make_adaptive_average_pool(const NodeContext& context) {
  return std::make_unique<AdaptiveAveragePool>(context);
}

}  // namespace tutti::program
