// An operator call as an instruction without backward.
#include "src/program/call.h"

#include <algorithm>

#include "src/graph/operator_call.h"

namespace tutti::program {
namespace {

using graph::kNoValue;
using graph::ValueId;

/// The first value that the node reads; kNoValue where it reads none.
ValueId first_input(const graph::Node& node) {
  for (const graph::Argument& argument : node.arguments) {
    for (const ValueId id : argument.ids) {
      if (id != kNoValue) return id;
    }
  }
  return kNoValue;
}

/// True where all results are views of the first value that the node reads.
bool makes_views(const NodeContext& context) {
  const ValueId input = first_input(context.node());
  const std::vector<ValueId>& outputs = context.node().outputs;
  return input != kNoValue && std::all_of(outputs.begin(), outputs.end(), [&](ValueId id) {
           return id == kNoValue || context.layouts().share(input, id);
         });
}

bool shares_with_buffer(const NodeContext& context, ValueId value) {
  const std::vector<graph::Buffer>& buffers = context.graph().buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const graph::Buffer& buffer) { return context.layouts().share(value, buffer.value); });
}

class Call final : public Instruction {
 public:
  explicit Call(const NodeContext& context)
      : call_(context.node(), context.precision()),
        name_(operator_name(context.node())),
        makes_views_(makes_views(context)),
        outputs_(context.node().outputs) {
    for (const ValueId written : call_.mutated_values()) {
      if (shares_with_buffer(context, written)) buffer_ = written;
    }
  }

  void forward(Frame& frame) const override {
    if (buffer_ == kNoValue || frame.training) {
      call_(frame.values, frame.training);
    } else if (outputs_.front() != kNoValue) {
      frame.values[outputs_.front()] = frame.values[buffer_];
    }
  }
  void backward(Frame&) const override {}
  std::string name() const override { return name_; }
  bool shares_memory(bool) const override { return makes_views_; }

 private:
  graph::OperatorCall call_;
  std::string name_;
  bool makes_views_;
  std::vector<ValueId> outputs_;
  ValueId buffer_ = kNoValue;  ///< what the operator writes, where that is a buffer's memory
};

}  // namespace

std::unique_ptr<Instruction> make_call(const NodeContext& context) { return std::make_unique<Call>(context); }

}  // namespace tutti::program
