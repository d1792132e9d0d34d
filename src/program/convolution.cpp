// Convolutions by ATen's kernels; gradients that nobody needs are not computed.
#include "src/program/convolution.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "src/program/convolution_memory.h"

namespace tutti::program {
namespace {

/// What aten::convolution takes besides tensors.
struct Geometry {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

class Convolution final : public Instruction {
 public:
  Convolution(const NodeContext& context, Geometry geometry)
      : geometry_(std::move(geometry)),
        input_(context.value(0)),
        weight_(context.value(1)),
        bias_(context.value(2)),
        output_(context.output()),
        targets_{context.target(0), context.target(1), context.target(2)},
        input_value_(context.graph().values[input_]),
        output_value_(context.graph().values[output_]),
        weight_value_(context.graph().values[weight_]),
        bias_size_{geometry_.transposed ? context.shape(weight_)[1] * geometry_.groups : context.shape(weight_)[0]},
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {}

  void forward(Frame& frame) const override {
    const std::optional<at::Tensor> bias =
        bias_ == graph::kNoValue ? std::optional<at::Tensor>() : std::optional<at::Tensor>(frame.values[bias_]);
    frame.values[output_] =
        at::convolution(frame.values[input_], frame.values[weight_], bias, geometry_.stride, geometry_.padding,
                        geometry_.dilation, geometry_.transposed, geometry_.output_padding, geometry_.groups);
  }

  void backward(Frame& frame) const override {
    auto [input, weight, bias] = at::convolution_backward(
        frame.gradients[output_], frame.values[input_], frame.values[weight_], bias_size_, geometry_.stride,
        geometry_.padding, geometry_.dilation, geometry_.transposed, geometry_.output_padding, geometry_.groups,
        {targets_[0].needed(), targets_[1].needed(), targets_[2].needed()});
    deliver(frame, targets_[0], std::move(input));
    deliver(frame, targets_[1], std::move(weight));
    deliver(frame, targets_[2], std::move(bias));
  }

  std::string name() const override { return name_; }
  std::vector<graph::ValueId> kept_values() const override { return {input_, weight_}; }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    int64_t bytes = convolution_scratch_bytes(size_for(size), pass, targets_[0].needed());
    if (pass == Pass::kBackward && targets_[1].needed()) {
      bytes += value_bytes(weight_value_, size.rows, size.element_bytes);
    }
    return bytes;
  }

 private:
  ConvolutionSize size_for(const RunSize& run) const {
    const auto is_one = [](int64_t number) { return number == 1; };
    const std::vector<int64_t>& kernel = weight_value_.shape;  // [out, in / groups, ...]; transposed: [in, ...]
    ConvolutionSize size;
    size.rows = run.rows;
    size.input_channels = input_value_.shape[1];
    size.output_channels = output_value_.shape[1];
    size.input_places = element_count(input_value_, 1) / size.input_channels;
    size.output_places = element_count(output_value_, 1) / size.output_channels;
    size.taps = element_count(weight_value_, 1) / (kernel[0] * kernel[1]);
    size.least_width = *std::min_element(kernel.begin() + 2, kernel.end());
    size.groups = geometry_.groups;
    size.is_plain = std::all_of(geometry_.stride.begin(), geometry_.stride.end(), is_one) &&
                    std::all_of(geometry_.dilation.begin(), geometry_.dilation.end(), is_one);
    size.is_padded = std::any_of(geometry_.padding.begin(), geometry_.padding.end(), [](int64_t n) { return n != 0; });
    size.is_transposed = geometry_.transposed;
    size.element_bytes = run.element_bytes;
    return size;
  }

  Geometry geometry_;
  graph::ValueId input_, weight_, bias_, output_;
  std::array<GradientTarget, 3> targets_;
  graph::Value input_value_, output_value_, weight_value_;
  std::vector<int64_t> bias_size_;
  std::string name_;
};

/// Dimensions over which the kernel moves.
size_t window_rank(const NodeContext& context) { return static_cast<size_t>(context.rank(context.value(1)) - 2); }

}  // namespace

std::unique_ptr<Instruction> make_convolution(const NodeContext& context) {
  const size_t dimensions = window_rank(context);
  Geometry geometry;
  geometry.stride = context.integers(3, dimensions);
  geometry.padding = context.integers(4, dimensions);
  geometry.dilation = context.integers(5, dimensions);
  geometry.output_padding.assign(dimensions, 0);
  geometry.groups = context.integer(6);
  return std::make_unique<Convolution>(context, std::move(geometry));
}

std::unique_ptr<Instruction> make_general_convolution(const NodeContext& context) {
  const size_t dimensions = window_rank(context);
  Geometry geometry;
  geometry.stride = context.integers(3, dimensions);
  geometry.padding = context.integers(4, dimensions);
  geometry.dilation = context.integers(5, dimensions);
  geometry.transposed = context.flag(6);
  geometry.output_padding = context.integers(7, dimensions);
  geometry.groups = context.integer(8);
  return std::make_unique<Convolution>(context, std::move(geometry));
}

std::unique_ptr<Instruction> make_transposed_convolution(const NodeContext& context) {
  const size_t dimensions = window_rank(context);
  Geometry geometry;
  geometry.stride = context.integers(3, dimensions);
  geometry.padding = context.integers(4, dimensions);
  geometry.output_padding = context.integers(5, dimensions);
  geometry.groups = context.integer(6);
  geometry.dilation = context.integers(7, dimensions);
  geometry.transposed = true;
  return std::make_unique<Convolution>(context, std::move(geometry));
}

std::unique_ptr<Instruction> make_padded_convolution(const NodeContext& context) {
  const size_t dimensions = window_rank(context);
  Geometry geometry;
  geometry.stride = context.integers(3, dimensions);
  geometry.dilation = context.integers(5, dimensions);
  geometry.output_padding.assign(dimensions, 0);
  geometry.groups = context.integer(6);
  const std::vector<int64_t>& kernel = context.shape(context.value(1));
  for (size_t d = 0; d < dimensions; ++d) {
    geometry.padding.push_back(context.text(4) == "same" ? geometry.dilation[d] * (kernel[d + 2] - 1) / 2 : 0);
  }
  return std::make_unique<Convolution>(context, std::move(geometry));
}

bool padded_convolution_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const c10::IValue& padding = node.arguments[4].constant;
  if (!padding.isString() || !node.arguments[5].constant.isIntList()) return false;
  if (padding.toStringRef() != "same") return padding.toStringRef() == "valid";
  const std::vector<int64_t>& kernel = graph.values[node.arguments[1].ids.front()].shape;
  const std::vector<int64_t> dilation = node.arguments[5].constant.toIntVector();
  for (size_t d = 2; d < kernel.size(); ++d) {
    const int64_t step = dilation.size() == 1 ? dilation.front() : dilation[d - 2];
    if (step * (kernel[d] - 1) % 2 != 0) return false;
  }
  return true;
}

}  // namespace tutti::program
