// aten::max.dim and aten::min.dim; the places are kept for backward.
#include "src/program/extremum.h"

#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>

#include "src/program/run_shape.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

class Extremum final : public Instruction {
 public:
  explicit Extremum(const NodeContext& context)
      : is_greatest_(context.node().target == "aten::max"),
        input_(context.value(0)),
        values_(context.node().outputs[0]),
        places_(context.node().outputs[1]),
        target_(context.target(0)),
        shape_(context.graph(), input_),
        dimension_(at::maybe_wrap_dim(context.integer(1), context.rank(input_))),
        keeps_dimension_(context.flag(2)),
        slot_(context.new_slot()),
        places_value_(context.graph().values[values_]) {
    places_value_.type = at::kLong;
  }

  void forward(Frame& frame) const override {
    auto [values, places] = is_greatest_ ? at::max(frame.values[input_], dimension_, keeps_dimension_)
                                         : at::min(frame.values[input_], dimension_, keeps_dimension_);
    frame.values[values_] = std::move(values);
    if (places_ != graph::kNoValue) frame.values[places_] = places;
    if (frame.training) frame.saved[slot_] = std::move(places);
  }

  void backward(Frame& frame) const override {
    const auto restored = [&](const at::Tensor& reduced) {
      return keeps_dimension_ ? reduced : reduced.unsqueeze(dimension_);
    };
    const at::Tensor& gradient = frame.gradients[values_];
    at::Tensor result = at::zeros(shape_(frame), gradient.options());
    deliver(frame, target_, result.scatter_(dimension_, restored(frame.saved[slot_]), restored(gradient)));
  }

  std::string name() const override { return is_greatest_ ? "max" : "min"; }
  int64_t saved_bytes(const RunSize& size) const override {
    const bool is_own = places_ == graph::kNoValue;
    return is_own ? value_bytes(places_value_, size.rows, size.element_bytes) : 0;
  }

 private:
  bool is_greatest_;
  graph::ValueId input_, values_, places_;
  GradientTarget target_;
  RunShape shape_;
  int64_t dimension_;
  bool keeps_dimension_;
  int64_t slot_;
  graph::Value places_value_;
};

}  // namespace

std::unique_ptr<Instruction> make_extremum(const NodeContext& context) { return std::make_unique<Extremum>(context); }

bool extremum_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  return node.outputs.size() == 2 && node.outputs[0] != graph::kNoValue && has_one_real_type(graph, node);
}

}  // namespace tutti::program
