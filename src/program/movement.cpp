// One instruction: the operator forward, and a function of the gradient backward.
#include "src/program/movement.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <functional>

#include "src/graph/operator_call.h"
#include "src/program/run_shape.h"

namespace tutti::program {
namespace {

using graph::ValueId;

/// The gradient of the input from that of the output.
struct Adjoint {
  std::function<at::Tensor(const at::Tensor& gradient, const Frame& frame)> apply;
  bool makes_view = false;  ///< of the output's gradient
};

class Movement final : public Instruction {
 public:
  Movement(const NodeContext& context, Adjoint adjoint)
      : call_(context.node(), context.precision()),
        name_(context.node().target.substr(context.node().target.rfind(':') + 1)),
        output_(context.output()),
        target_(context.target(0)),
        is_view_(context.layouts().share(context.value(0), output_)),
        adjoint_(std::move(adjoint)) {}

  void forward(Frame& frame) const override { call_(frame.values, frame.training); }
  void backward(Frame& frame) const override {
    deliver(frame, target_, adjoint_.apply(frame.gradients[output_], frame));
  }
  std::string name() const override { return name_; }
  bool shares_memory(bool) const override { return is_view_; }
  bool shares_gradient() const override { return adjoint_.makes_view; }

 private:
  graph::OperatorCall call_;
  std::string name_;
  ValueId output_;
  GradientTarget target_;
  bool is_view_;
  Adjoint adjoint_;
};

template <typename Function>
std::unique_ptr<Instruction> make(const NodeContext& context, Function adjoint) {
  return std::make_unique<Movement>(context, Adjoint{std::move(adjoint)});
}

std::vector<int64_t> negative(std::vector<int64_t> values) {
  for (int64_t& value : values) value = -value;
  return values;
}

/// The sum over all copies of each element: size s, repeated r times, is seen as [r, s].
at::Tensor sum_of_repeats(const at::Tensor& gradient, const at::DimVector& shape) {
  const size_t added = static_cast<size_t>(gradient.dim()) - shape.size();
  at::DimVector split, repeats;
  for (size_t i = 0; i < static_cast<size_t>(gradient.dim()); ++i) {
    const int64_t size = i < added ? 1 : shape[i - added];
    repeats.push_back(static_cast<int64_t>(2 * i));
    split.append({size == 0 ? 0 : gradient.size(static_cast<int64_t>(i)) / size, size});
  }
  return gradient.reshape(split).sum(repeats).reshape(shape);
}

}  // namespace

std::unique_ptr<Instruction> make_copy(const NodeContext& context) {
  const at::ScalarType type = context.type(context.value(0));
  const bool keeps_type = type == context.type(context.output());
  return std::make_unique<Movement>(
      context, Adjoint{[type](const at::Tensor& gradient, const Frame&) { return gradient.to(type); }, keeps_type});
}

bool copy_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return c10::isFloatingType(graph.values[node.arguments.front().ids.front()].type) &&
         c10::isFloatingType(graph.values[node.outputs.front()].type);
}

std::unique_ptr<Instruction> make_expand(const NodeContext& context) {
  return make(context,
              [shape = RunShape(context.graph(), context.value(0))](const at::Tensor& gradient, const Frame& frame) {
                return at::sum_to(gradient, shape(frame));
              });
}

std::unique_ptr<Instruction> make_repeat(const NodeContext& context) {
  return make(context,
              [shape = RunShape(context.graph(), context.value(0))](const at::Tensor& gradient, const Frame& frame) {
                return sum_of_repeats(gradient, shape(frame));
              });
}

std::unique_ptr<Instruction> make_flip(const NodeContext& context) {
  return make(context, [dimensions = context.integers(1)](const at::Tensor& gradient, const Frame&) {
    return at::flip(gradient, dimensions);
  });
}

std::unique_ptr<Instruction> make_roll(const NodeContext& context) {
  return make(context,
              [shifts = negative(context.integers(1)), dimensions = context.integers(2)](
                  const at::Tensor& gradient, const Frame&) { return at::roll(gradient, shifts, dimensions); });
}

std::unique_ptr<Instruction> make_pixel_shuffle(const NodeContext& context) {
  return make(context, [factor = context.integer(1)](const at::Tensor& gradient, const Frame&) {
    return at::pixel_unshuffle(gradient, factor);
  });
}

std::unique_ptr<Instruction> make_pixel_unshuffle(const NodeContext& context) {
  return make(context, [factor = context.integer(1)](const at::Tensor& gradient, const Frame&) {
    return at::pixel_shuffle(gradient, factor);
  });
}

std::unique_ptr<Instruction> make_unfold(const NodeContext& context) {
  return make(context,
              [shape = RunShape(context.graph(), context.value(0)), dimension = context.integer(1),
               size = context.integer(2), step = context.integer(3)](const at::Tensor& gradient, const Frame& frame) {
                return at::unfold_backward(gradient, shape(frame), dimension, size, step);
              });
}

std::unique_ptr<Instruction> make_pad(const NodeContext& context) {
  return make(context, [cut = negative(context.integers(1))](const at::Tensor& gradient, const Frame&) {
    return at::constant_pad_nd(gradient, cut);
  });
}

bool pad_has_instruction(const graph::Graph&, const graph::Node& node) {
  return node.target == "aten::constant_pad_nd" || node.arguments[2].constant.toStringRef() == "constant";
}

}  // namespace tutti::program
