// Reshape and permute: views forward; backward the view back.
#include "src/program/shape.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/program/run_shape.h"
#include "src/program/view_call.h"

namespace tutti::program {
namespace {

class Reshape final : public Instruction {
 public:
  explicit Reshape(const NodeContext& context)
      : input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        input_shape_(context.graph(), input_),
        output_shape_(context.graph(), output_),
        is_view_(context.layouts().share(input_, output_)) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = frame.values[input_].reshape(output_shape_(frame));
  }
  void backward(Frame& frame) const override {
    deliver(frame, target_, frame.gradients[output_].reshape(input_shape_(frame)));
  }
  std::string name() const override { return "reshape"; }
  bool shares_memory(bool) const override { return is_view_; }
  bool shares_gradient() const override { return true; }

 private:
  graph::ValueId input_, output_;
  GradientTarget target_;
  RunShape input_shape_, output_shape_;
  bool is_view_;  ///< false where the elements must be moved to lie in order
};

/// The input's dimension in each place of the output, from a tensor whose sizes tell its dimensions apart.
std::vector<int64_t> order_of_dimensions(const NodeContext& context) {
  std::vector<int64_t> sizes(context.shape(context.value(0)).size());
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<int64_t>(i) + 2;
  const at::Tensor probe = at::empty(sizes, at::TensorOptions().device(at::kMeta));
  std::vector<int64_t> order = ViewCall(context.node())(probe, {}).front().sizes().vec();
  for (int64_t& dimension : order) dimension -= 2;
  return order;
}

class Permute final : public Instruction {
 public:
  explicit Permute(const NodeContext& context)
      : input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        order_(order_of_dimensions(context)),
        inverse_(order_.size()) {
    for (size_t i = 0; i < order_.size(); ++i) inverse_[order_[i]] = static_cast<int64_t>(i);
  }

  void forward(Frame& frame) const override { frame.values[output_] = frame.values[input_].permute(order_); }
  void backward(Frame& frame) const override {
    const at::Tensor gradient = frame.gradients[output_].permute(inverse_);
    // Most readers of a gradient would copy it into order themselves, some more than once.
    deliver(frame, target_, target_.bound ? gradient : gradient.contiguous());
  }
  std::string name() const override { return "permute"; }
  bool shares_memory(bool) const override { return true; }
  bool shares_gradient() const override { return false; }

 private:
  graph::ValueId input_, output_;
  GradientTarget target_;
  std::vector<int64_t> order_, inverse_;
};

}  // namespace

std::unique_ptr<Instruction> make_reshape(const NodeContext& context) { return std::make_unique<Reshape>(context); }

std::unique_ptr<Instruction> make_permute(const NodeContext& context) { return std::make_unique<Permute>(context); }

bool permute_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return !c10::isComplexType(graph.values[node.outputs.front()].type);
}

}  // namespace tutti::program
