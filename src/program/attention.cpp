// Attention backward, from the kept probabilities.
#include "src/program/attention.h"

#include <ATen/ATen.h>

#include "src/program/attention_formula.h"
#include "src/program/broadcast.h"

namespace tutti::program {
namespace {

using at::Tensor;
using graph::ValueId;

class Attention final : public Instruction {
 public:
  explicit Attention(const NodeContext& context)
      : formula_(context.graph(), context.node(), context.index()),
        query_(context.value(0)),
        key_(context.value(1)),
        value_(context.value(2)),
        output_(context.output()),
        query_target_(context.target(0)),
        key_target_(context.target(1)),
        value_target_(context.target(2)),
        mask_target_(context.target(3)),
        probabilities_slot_(context.new_slot()),
        kept_slot_(context.new_slot()) {
    if (mask_target_.needed()) {
      mask_broadcast_ = Broadcast(context.shape(context.value(3)), formula_.probabilities_shape());
    }
    for (const ValueId id : {query_, key_, value_}) {
      if (!context.layouts().is_contiguous(id)) copied_.push_back(context.graph().values[id]);
    }
    probabilities_ = {graph::ValueKind::kResult, "", context.graph().values[output_].type,
                      formula_.probabilities_shape()};
  }

  void forward(Frame& frame) const override {
    AttentionFormula::Result result = formula_(frame.values, frame.random, frame.training);
    frame.values[output_] = std::move(result.output);
    if (!frame.training) return;
    frame.saved[probabilities_slot_] = std::move(result.probabilities);
    frame.saved[kept_slot_] = std::move(result.kept);
  }

  void backward(Frame& frame) const override {
    const Tensor& gradient = frame.gradients[output_];
    const bool reads_scores = query_target_.needed() || key_target_.needed() || mask_target_.needed();
    const Tensor scores = reads_scores ? scores_gradient(frame, gradient) : Tensor();  // [..., places, key places]
    if (query_target_.needed()) {
      const Tensor key = formula_.with_all_heads(frame.values[key_]);
      deliver(frame, query_target_, at::matmul(scores, key).mul_(formula_.scale()));
    }
    if (key_target_.needed()) {
      const Tensor of_heads = at::matmul(scores.transpose(-2, -1), frame.values[query_]).mul_(formula_.scale());
      deliver(frame, key_target_, formula_.with_own_heads(of_heads));
    }
    if (value_target_.needed()) {
      const Tensor of_heads = at::matmul(weights(frame).transpose(-2, -1), gradient);
      deliver(frame, value_target_, formula_.with_own_heads(of_heads));
    }
    if (mask_target_.needed()) deliver(frame, mask_target_, mask_broadcast_.sum(scores));
  }

  std::string name() const override { return "attention"; }
  std::vector<ValueId> kept_values() const override { return {query_, key_, value_}; }

  int64_t saved_bytes(const RunSize& size) const override {
    const int64_t elements = element_count(probabilities_, size.rows);
    return probabilities_bytes(size) + (formula_.has_dropout() ? block_bytes(elements) : 0);
  }

  /// Scores or what dropout leaves beside the probabilities, and copies for the batched products; backward two tensors
  /// like the scores.
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    int64_t copies = 0;
    for (const graph::Value& value : copied_) copies += value_bytes(value, size.rows, size.element_bytes);
    return pass == Pass::kForward ? probabilities_bytes(size) + copies : 2 * probabilities_bytes(size) + copies;
  }

 private:
  int64_t probabilities_bytes(const RunSize& size) const {
    return value_bytes(probabilities_, size.rows, size.element_bytes);
  }

  /// By which the values were summed.
  Tensor weights(const Frame& frame) const {
    const Tensor& kept = frame.saved[kept_slot_];
    const Tensor& probabilities = frame.saved[probabilities_slot_];
    return kept.defined() ? formula_.after_dropout(probabilities, kept) : probabilities;
  }

  /// The gradient of the scores.
  Tensor scores_gradient(const Frame& frame, const Tensor& gradient) const {
    const Tensor &kept = frame.saved[kept_slot_], &probabilities = frame.saved[probabilities_slot_];
    Tensor result = at::matmul(gradient, formula_.with_all_heads(frame.values[value_]).transpose(-2, -1));
    if (kept.defined()) result = formula_.after_dropout(result, kept);
    return at::_softmax_backward_data(result, probabilities, -1, probabilities.scalar_type());
  }

  AttentionFormula formula_;
  ValueId query_, key_, value_, output_;
  GradientTarget query_target_, key_target_, value_target_, mask_target_;
  Broadcast mask_broadcast_;
  int64_t probabilities_slot_, kept_slot_;
  graph::Value probabilities_;
  std::vector<graph::Value> copied_;  ///< operands that products have to copy
};

}  // namespace

std::unique_ptr<Instruction> make_attention(const NodeContext& context) { return std::make_unique<Attention>(context); }

}  // namespace tutti::program
