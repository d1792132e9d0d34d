// aten::cat and the step counter aten::add_.
#include "src/program/elementwise.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/program/value_use.h"

namespace tutti::program {
namespace {

using graph::Argument;
using graph::ValueId;

class Cat final : public Instruction {
 public:
  explicit Cat(const NodeContext& context)
      : inputs_(context.values(0)),
        output_(context.output()),
        dimension_(at::maybe_wrap_dim(context.integer(1), context.rank(output_))),
        targets_(context.targets(0)) {
    for (const ValueId input : inputs_) sizes_.push_back(context.shape(input)[dimension_]);
  }

  void forward(Frame& frame) const override {
    std::vector<at::Tensor> inputs;
    for (const ValueId input : inputs_) inputs.push_back(frame.values[input]);
    frame.values[output_] = at::cat(inputs, dimension_);
  }

  void backward(Frame& frame) const override {
    int64_t begin = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (targets_[i].needed()) {
        deliver(frame, targets_[i], frame.gradients[output_].narrow(dimension_, begin, sizes_[i]).contiguous());
      }
      begin += sizes_[i];
    }
  }

  std::string name() const override { return "cat"; }

 private:
  std::vector<ValueId> inputs_;
  ValueId output_;
  int64_t dimension_;
  std::vector<GradientTarget> targets_;
  std::vector<int64_t> sizes_;  ///< of each input along the dimension
};

class Counter final : public Instruction {
 public:
  explicit Counter(const NodeContext& context) : buffer_(context.value(0)), step_(context.integer(1)) {}

  void forward(Frame& frame) const override {
    if (frame.training) *frame.values[buffer_].mutable_data_ptr<int64_t>() += step_;
  }
  void backward(Frame&) const override {}
  std::string name() const override { return "counter"; }

 private:
  ValueId buffer_;
  int64_t step_;
};

}  // namespace

std::unique_ptr<Instruction> make_cat(const NodeContext& context) { return std::make_unique<Cat>(context); }

bool cat_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  if (node.arguments.size() != 2 || !node.arguments[1].constant.isInt()) return false;
  const int64_t rank = static_cast<int64_t>(graph.values[node.outputs.front()].shape.size());
  const int64_t dimension = node.arguments[1].constant.toInt();
  const auto is_known = [&](ValueId id) {
    const graph::Value& value = graph.values[id];
    return static_cast<int64_t>(value.shape.size()) == rank && value.shape[at::maybe_wrap_dim(dimension, rank)] >= 0;
  };
  return std::all_of(node.arguments[0].ids.begin(), node.arguments[0].ids.end(), is_known);
}

std::unique_ptr<Instruction> make_counter(const NodeContext& context) { return std::make_unique<Counter>(context); }

bool counter_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  if (node.arguments.size() != 3 || !node.arguments[1].constant.isInt()) return false;
  const ValueId buffer = node.arguments[0].ids.front();
  const graph::Value& value = graph.values[buffer];
  const c10::IValue& factor = node.arguments[2].constant;
  const bool is_plain = factor.isInt() && factor.toInt() == 1 && value.type == at::kLong && value.shape.empty();
  const auto is_read_elsewhere = [&](ValueId id) { return is_read(graph, id, node); };
  return is_plain && value.kind == graph::ValueKind::kBuffer && !is_read_elsewhere(buffer) &&
         std::none_of(node.outputs.begin(), node.outputs.end(), is_read_elsewhere);
}

}  // namespace tutti::program
