// Pooling by ATen's kernels, except max pooling of planes. One dimension runs as two, with a height of 1.
#include "src/program/pooling.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <fmt/format.h>

#include <array>

#include "src/program/max_pool_kernel.h"

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
at::Tensor without_height(const at::Tensor& tensor, int64_t dimensions) {
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
  void set_output(Frame& frame, const at::Tensor& output) const {
    frame.values[output_] = without_height(output, dimensions_);
  }
  void deliver_input(Frame& frame, const at::Tensor& gradient) const {
    deliver(frame, target_, without_height(gradient, dimensions_));
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
    set_output(frame, output);
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

/// The own kernel's max pooling: one or two dimensions, windows of at most kMaxPoolPlaces places.
class PlaneMaxPool final : public Pool {
 public:
  explicit PlaneMaxPool(const NodeContext& context)
      : Pool(context), slot_(context.new_slot()), output_value_(context.graph().values[output_]) {
    const std::vector<int64_t>& input = context.shape(input_);
    shape_.height = dimensions_ == 1 ? 1 : input[2];
    shape_.width = input.back();
    shape_.output_height = dimensions_ == 1 ? 1 : output_value_.shape[2];
    shape_.output_width = output_value_.shape.back();
    const auto pair = [](const std::vector<int64_t>& numbers) { return std::array{numbers[0], numbers[1]}; };
    shape_.kernel = pair(window(context, 1, dimensions_, 1));
    shape_.stride = pair(window_stride(context, dimensions_));
    shape_.padding = pair(window(context, 3, dimensions_, 0));
    shape_.dilation = pair(window(context, 4, dimensions_, 1));
    channels_ = input[1];
  }

  void forward(Frame& frame) const override {
    const at::Tensor input = frame.values[input_].contiguous();
    std::vector<int64_t> sizes = output_value_.shape;
    sizes[0] = input.size(0);
    at::Tensor output = at::empty(sizes, input.options());
    at::Tensor places = at::empty(sizes, input.options().dtype(at::kByte));
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "max_pool", [&] {
      max_pool_forward(shape_for(input.size(0)), input.const_data_ptr<scalar_t>(), output.mutable_data_ptr<scalar_t>(),
                       places.mutable_data_ptr<uint8_t>());
    });
    frame.values[output_] = std::move(output);
    if (frame.training) frame.saved[slot_] = std::move(places);
  }

  void backward(Frame& frame) const override {
    const at::Tensor gradient = frame.gradients[output_].contiguous();
    std::vector<int64_t> sizes = gradient.sizes().vec();
    if (dimensions_ == 2) sizes[2] = shape_.height;
    sizes.back() = shape_.width;
    at::Tensor input_gradient = at::empty(sizes, gradient.options());
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "max_pool_backward", [&] {
      max_pool_backward(shape_for(gradient.size(0)), gradient.const_data_ptr<scalar_t>(),
                        frame.saved[slot_].const_data_ptr<uint8_t>(), input_gradient.mutable_data_ptr<scalar_t>());
    });
    deliver(frame, target_, std::move(input_gradient));
  }

  std::vector<graph::ValueId> kept_values() const override { return {}; }
  int64_t saved_bytes(const RunSize& size) const override {
    return block_bytes(element_count(output_value_, size.rows));
  }

 private:
  MaxPoolShape shape_for(int64_t rows) const {
    MaxPoolShape shape = shape_;
    shape.planes = rows * channels_;
    return shape;
  }

  int64_t slot_;
  graph::Value output_value_;
  MaxPoolShape shape_;
  int64_t channels_ = 0;
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

std::unique_ptr<Instruction> make_max_pool(const NodeContext& context) {
  const int64_t dimensions = spatial_dimensions(context);
  int64_t places = 1;
  for (const int64_t size : context.integers(1, static_cast<size_t>(dimensions))) places *= size;
  if (dimensions < 3 && places <= kMaxPoolPlaces) return std::make_unique<PlaneMaxPool>(context);
  return std::make_unique<MaxPool>(context);
}

std::unique_ptr<Instruction> make_average_pool(const NodeContext& context) {
  return std::make_unique<AveragePool>(context);
}

std::unique_ptr<Instruction> make_adaptive_average_pool(const NodeContext& context) {
  return std::make_unique<AdaptiveAveragePool>(context);
}

}  // namespace tutti::program
