// aten::embedding by ATen's kernels.
#include "src/program/embedding.h"

#include <ATen/ATen.h>

namespace tutti::program {
namespace {

class Embedding final : public Instruction {
 public:
  explicit Embedding(const NodeContext& context)
      : weight_(context.value(0)),
        indices_(context.value(1)),
        output_(context.output()),
        padding_index_(context.integer(2)),
        scales_by_frequency_(context.flag(3)),
        target_(context.target(0)),
        weight_value_(context.graph().values[weight_]) {}

  void forward(Frame& frame) const override {
    frame.values[output_] = at::embedding(frame.values[weight_], frame.values[indices_], padding_index_);
  }

  void backward(Frame& frame) const override {
    deliver(frame, target_,
            at::embedding_dense_backward(frame.gradients[output_], frame.values[indices_], weight_value_.shape.front(),
                                         padding_index_, scales_by_frequency_));
  }

  std::string name() const override { return "embedding"; }
  std::vector<graph::ValueId> kept_values() const override { return {indices_}; }
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return pass == Pass::kBackward && target_.bound ? value_bytes(weight_value_, size.rows, size.element_bytes) : 0;
  }

 private:
  graph::ValueId weight_, indices_, output_;
  int64_t padding_index_;
  bool scales_by_frequency_;
  GradientTarget target_;
  graph::Value weight_value_;
};

}  // namespace

std::unique_ptr<Instruction> make_embedding(const NodeContext& context) { return std::make_unique<Embedding>(context); }

}  // namespace tutti::program
