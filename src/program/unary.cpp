// One instruction for all functions of one tensor.
#include "src/program/unary.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using Reads = UnaryFunction::Reads;

std::vector<c10::IValue> constants_of(const graph::Node& node) {
  std::vector<c10::IValue> constants;
  for (size_t i = 1; i < node.arguments.size(); ++i) constants.push_back(node.arguments[i].constant);
  return constants;
}

class Unary final : public Instruction {
 public:
  Unary(const NodeContext& context, const UnaryFunction& function)
      : function_(function),
        constants_(constants_of(context.node())),
        input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        input_value_(context.graph().values[input_]) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = function_.forward(frame.values[input_], constants_);
  }

  void backward(Frame& frame) const override {
    const at::Tensor read = function_.reads == Reads::kNothing ? at::Tensor() : frame.values[read_value()];
    deliver(frame, target_, function_.backward(frame.gradients[output_], read, constants_));
  }

  std::string name() const override { return std::string(function_.target.substr(function_.target.find("::") + 2)); }

  std::vector<graph::ValueId> kept_values() const override {
    if (function_.reads == Reads::kNothing) return {};
    return {read_value()};
  }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    const int64_t count = function_.temporaries + (target_.bound ? 1 : 0);
    return count * value_bytes(input_value_, size.rows, size.element_bytes);
  }

 private:
  graph::ValueId read_value() const { return function_.reads == Reads::kInput ? input_ : output_; }

  const UnaryFunction& function_;
  std::vector<c10::IValue> constants_;
  graph::ValueId input_, output_;
  GradientTarget target_;
  graph::Value input_value_;
};

}  // namespace

std::unique_ptr<Instruction> make_unary(const NodeContext& context, std::span<const UnaryFunction> table) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const UnaryFunction& function) {
    return function.target == context.node().target;
  });
  return std::make_unique<Unary>(context, *found);
}

bool unary_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return node.arguments.front().kind == graph::Argument::Kind::kValue &&
         std::all_of(
             node.arguments.begin() + 1, node.arguments.end(),
             [](const graph::Argument& argument) { return argument.kind == graph::Argument::Kind::kConstant; }) &&
         has_one_real_type(graph, node);
}

}  // namespace tutti::program
