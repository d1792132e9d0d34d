// Dropout: the mask, and the instruction that saves one byte per element for backward.
#include "src/program/dropout.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <fmt/format.h>

#include <cmath>

namespace tutti::program {
namespace {

constexpr int64_t kNodeLimit = int64_t{1} << 16;

double scale_of(double probability) { return probability < 1 ? 1 / (1 - probability) : 0; }

int64_t row_elements_of(at::IntArrayRef shape) {
  int64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i) count *= shape[i];
  return count;
}

/// result = kept ? input × scale : 0.
at::Tensor apply_kept(const at::Tensor& input, const at::Tensor& kept, double probability) {
  at::Tensor result = at::empty(input.sizes(), input.options());
  const int64_t count = input.numel();
  const uint8_t* keep = kept.const_data_ptr<uint8_t>();
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "dropout", [&] {
    const auto scale = static_cast<scalar_t>(scale_of(probability));
    const scalar_t* from = input.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < count; ++i) to[i] = keep[i] != 0 ? from[i] * scale : scalar_t{0};
  });
  return result;
}

class Dropout final : public Instruction {
 public:
  explicit Dropout(const NodeContext& context)
      : site_(dropout_site(context.node(), context.index())),
        active_(context.flag(2) && site_.probability > 0),
        input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        saved_(context.new_slot()),
        value_(context.graph().values[output_]) {}

  void forward(Frame& frame) const override {
    if (!active_ || !frame.training) {
      frame.values[output_] = frame.values[input_];
      return;
    }
    const at::Tensor input = frame.values[input_].contiguous();
    at::Tensor kept = at::empty(input.sizes(), input.options().dtype(at::kByte));
    draw_kept(frame.random, site_, input.size(0), row_elements_of(input.sizes()), kept.mutable_data_ptr<uint8_t>());
    frame.values[output_] = apply_kept(input, kept, site_.probability);
    frame.saved[saved_] = std::move(kept);
  }

  void backward(Frame& frame) const override {
    const at::Tensor& gradient = frame.gradients[output_];
    deliver(frame, target_,
            active_ ? apply_kept(gradient.contiguous(), frame.saved[saved_], site_.probability) : gradient);
  }

  std::string name() const override { return "dropout"; }
  bool shares_memory(bool training) const override { return !active_ || !training; }
  int64_t saved_bytes(const RunSize& size) const override {
    return active_ ? block_bytes(element_count(value_, size.rows)) : 0;
  }

 private:
  DropoutSite site_;
  bool active_;
  graph::ValueId input_, output_;
  GradientTarget target_;
  int64_t saved_;
  graph::Value value_;
};

}  // namespace

DropoutSite dropout_site(const graph::Node& node, int64_t node_index) {
  const c10::IValue& constant = node.arguments.at(1).constant;
  const double probability = constant.isInt() ? static_cast<double>(constant.toInt()) : constant.toDouble();
  if (!(probability >= 0 && probability <= 1)) {
    throw graph::GraphError(
        fmt::format("{}: the probability is {}, expected 0 <= p <= 1. Correct it.", described(node), probability));
  }
  if (node_index >= kNodeLimit) {
    throw graph::GraphError(
        fmt::format("{}: node {} of the graph; dropout must come before node {}. Use a smaller graph.", described(node),
                    node_index, kNodeLimit));
  }
  return {node_index, probability};
}

void draw_kept(const RandomPosition& position, const DropoutSite& site, int64_t rows, int64_t row_elements,
               uint8_t* kept) {
  // uniform_float(word) >= p, with the multiplication by 2^24 (exact) moved to the other side.
  const auto threshold = static_cast<uint32_t>(std::ceil(site.probability * 0x1p24));
  const uint32_t place = static_cast<uint32_t>(site.node) | position.micro_batch << 16;
  for (int64_t row = 0; row < rows; ++row) {
    const auto global_row = static_cast<uint32_t>(position.first_row + row);
    uint8_t* to = kept + row * row_elements;
    for (int64_t element = 0; element < row_elements; element += 4) {
      const data::PhiloxWords words =
          data::philox(position.key, {static_cast<uint32_t>(element / 4), global_row, place, position.step});
      const int64_t count = std::min<int64_t>(4, row_elements - element);
      for (int64_t i = 0; i < count; ++i) to[element + i] = (words[i] >> 8) >= threshold ? 1 : 0;
    }
  }
}

at::Tensor dropout_mask(at::IntArrayRef shape, const RandomPosition& position, const DropoutSite& site,
                        at::ScalarType type) {
  at::Tensor kept = at::empty(shape, at::kByte);
  draw_kept(position, site, shape.front(), row_elements_of(shape), kept.mutable_data_ptr<uint8_t>());
  return kept.to(type).mul_(scale_of(site.probability));
}

std::unique_ptr<Instruction> make_dropout(const NodeContext& context) { return std::make_unique<Dropout>(context); }

}  // namespace tutti::program
