// Forward reads at the indices, backward adds there: in one thread, in the order of the indices.
#include "src/program/indexing.h"

#include <ATen/ATen.h>

#include <functional>

#include "src/graph/operator_call.h"
#include "src/program/run_shape.h"

namespace tutti::program {
namespace {

using graph::ValueId;

/// Adds the output's gradient into the input's.
using Addition = std::function<void(at::Tensor whole, const at::Tensor& gradient, const Frame& frame)>;

class Indexing final : public Instruction {
 public:
  Indexing(const NodeContext& context, std::vector<ValueId> indices, Addition addition)
      : call_(context.node(), context.precision()),
        name_(context.node().target.substr(context.node().target.rfind(':') + 1)),
        output_(context.output()),
        indices_(std::move(indices)),
        target_(context.target(0)),
        shape_(context.graph(), context.value(0)),
        type_(context.type(context.value(0))),
        addition_(std::move(addition)) {}

  void forward(Frame& frame) const override { call_(frame.values, frame.training); }
  void backward(Frame& frame) const override {
    addition_(gradient_to_add_to(frame, target_, shape_(frame), type_), frame.gradients[output_], frame);
  }
  std::string name() const override { return name_; }
  std::vector<ValueId> kept_values() const override { return indices_; }
  bool adds_in_place() const override { return true; }

 private:
  graph::OperatorCall call_;
  std::string name_;
  ValueId output_;
  std::vector<ValueId> indices_;
  GradientTarget target_;
  RunShape shape_;
  at::ScalarType type_;
  Addition addition_;
};

}  // namespace

std::unique_ptr<Instruction> make_index_select(const NodeContext& context) {
  const ValueId indices = context.value(2);
  return std::make_unique<Indexing>(
      context, std::vector{indices},
      [dimension = context.integer(1), indices](at::Tensor whole, const at::Tensor& gradient, const Frame& frame) {
        whole.index_add_(dimension, frame.values[indices], gradient);
      });
}

std::unique_ptr<Instruction> make_gather(const NodeContext& context) {
  const ValueId indices = context.value(2);
  return std::make_unique<Indexing>(
      context, std::vector{indices},
      [dimension = context.integer(1), indices](at::Tensor whole, const at::Tensor& gradient, const Frame& frame) {
        whole.scatter_add_(dimension, frame.values[indices], gradient);
      });
}

std::unique_ptr<Instruction> make_index(const NodeContext& context) {
  const std::vector<ValueId> ids = context.values(1);
  std::vector<ValueId> indices = ids;
  std::erase(indices, graph::kNoValue);
  return std::make_unique<Indexing>(
      context, std::move(indices), [ids](at::Tensor whole, const at::Tensor& gradient, const Frame& frame) {
        c10::List<std::optional<at::Tensor>> places;
        for (const ValueId id : ids) {
          places.push_back(id == graph::kNoValue ? std::nullopt : std::optional(frame.values[id]));
        }
        whole.index_put_(places, gradient, /*accumulate=*/true);
      });
}

}  // namespace tutti::program
