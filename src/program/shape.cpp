// Flatten and reshape: views forward and backward.
#include "src/program/shape.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tutti::program {
namespace {

/// The shape with -1 for the dimension that depends on the batch.
std::vector<int64_t> open_shape(std::vector<int64_t> shape) {
  for (int64_t& size : shape) size = std::max<int64_t>(size, -1);
  return shape;
}

/// A new shape for the same elements. A shape may hold one -1, which is the batch or what is left.
class Reshape : public Instruction {
 public:
  Reshape(const NodeContext& context, std::vector<int64_t> output_shape)
      : input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        input_shape_(open_shape(context.shape(input_))),
        output_shape_(open_shape(std::move(output_shape))) {}

  void forward(Frame& frame) const override { frame.values[output_] = frame.values[input_].reshape(output_shape_); }
  void backward(Frame& frame) const override {
    deliver(frame, target_, frame.gradients[output_].reshape(input_shape_));
  }
  std::string name() const override { return "reshape"; }
  bool shares_memory(bool) const override { return true; }

 private:
  graph::ValueId input_, output_;
  GradientTarget target_;
  std::vector<int64_t> input_shape_, output_shape_;
};

}  // namespace

std::unique_ptr<Instruction> make_flatten(const NodeContext& context) {
  return std::make_unique<Reshape>(context, context.shape(context.output()));
}

std::unique_ptr<Instruction> make_reshape(const NodeContext& context) {
  return std::make_unique<Reshape>(context, context.integers(1));
}

bool reshape_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const auto is_open_once = [&](graph::ValueId id) {
    const std::vector<int64_t>& shape = graph.values[id].shape;
    return std::count_if(shape.begin(), shape.end(), [](int64_t size) { return size < 0; }) <= 1;
  };
  return is_open_once(node.arguments.front().ids.front()) && is_open_once(node.outputs.front());
}

}  // namespace tutti::program
