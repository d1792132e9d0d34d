// What the operator views in the value, it views in the gradient.
#include "src/program/parts.h"

#include <ATen/ATen.h>

#include "src/program/run_shape.h"
#include "src/program/view_call.h"

namespace tutti::program {
namespace {

using graph::ValueId;

class Parts final : public Instruction {
 public:
  explicit Parts(const NodeContext& context)
      : name_(context.node().target.substr(context.node().target.rfind(':') + 1)),
        whole_(context.value(0)),
        parts_(context.node().outputs),
        target_(context.target(0)),
        views_(context.node()),
        whole_shape_(context.graph(), whole_),
        type_(context.type(whole_)) {}

  void forward(Frame& frame) const override {
    std::vector<at::Tensor> views = views_(frame.values[whole_], frame.values);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] != graph::kNoValue) frame.values[parts_[i]] = std::move(views[i]);
    }
  }

  void backward(Frame& frame) const override {
    const at::Tensor whole = gradient_to_add_to(frame, target_, whole_shape_(frame), type_);
    const std::vector<at::Tensor> views = views_(whole, frame.values);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == graph::kNoValue || !frame.gradients[parts_[i]].defined()) continue;
      views[i].add_(frame.gradients[parts_[i]]);
    }
  }

  std::string name() const override { return name_; }
  std::vector<ValueId> kept_values() const override { return views_.numbers(); }
  bool shares_memory(bool) const override { return true; }
  bool shares_gradient() const override { return false; }
  bool adds_in_place() const override { return true; }

 private:
  std::string name_;
  ValueId whole_;
  std::vector<ValueId> parts_;
  GradientTarget target_;
  ViewCall views_;
  RunShape whole_shape_;
  at::ScalarType type_;
};

class Stack final : public Instruction {
 public:
  explicit Stack(const NodeContext& context)
      : inputs_(context.values(0)),
        output_(context.output()),
        dimension_(context.integer(1)),
        targets_(context.targets(0)) {}

  void forward(Frame& frame) const override {
    std::vector<at::Tensor> inputs;
    for (const ValueId input : inputs_) inputs.push_back(frame.values[input]);
    frame.values[output_] = at::stack(inputs, dimension_);
  }

  void backward(Frame& frame) const override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!targets_[i].needed()) continue;
      const at::Tensor gradient = frame.gradients[output_].select(dimension_, static_cast<int64_t>(i));
      deliver(frame, targets_[i], targets_[i].bound ? gradient : gradient.clone(at::MemoryFormat::Contiguous));
    }
  }

  std::string name() const override { return "stack"; }

 private:
  std::vector<ValueId> inputs_;
  ValueId output_;
  int64_t dimension_;
  std::vector<GradientTarget> targets_;
};

}  // namespace

std::unique_ptr<Instruction> make_parts(const NodeContext& context) { return std::make_unique<Parts>(context); }

std::unique_ptr<Instruction> make_stack(const NodeContext& context) { return std::make_unique<Stack>(context); }

}  // namespace tutti::program
