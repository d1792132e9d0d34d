// Dropout: the mask, and the instruction that saves one byte per element for backward.
#include "src/program/dropout.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <fmt/format.h>

#include <cmath>

namespace tutti::program {
namespace {

constexpr int64_t kNodeLimit = int64_t{1} << 16;

/// The bytes of `rows` rows one after another.
void draw_rows(const RandomPosition& position, const DropoutSite& site, int64_t rows, int64_t row_elements,
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

/// result = kept ? input × scale : 0.
at::Tensor apply_kept(const at::Tensor& input, const at::Tensor& kept, double scale_of_kept) {
  at::Tensor result = at::empty(input.sizes(), input.options());
  const int64_t count = input.numel();
  const uint8_t* keep = kept.const_data_ptr<uint8_t>();
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "dropout", [&] {
    const auto scale = static_cast<scalar_t>(scale_of_kept);
    const scalar_t* from = input.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < count; ++i) to[i] = keep[i] != 0 ? from[i] * scale : scalar_t{0};
  });
  return result;
}

/// A training flag that is none means training.
bool is_active(const c10::IValue& flag) { return flag.isNone() || flag.toBool(); }

class Dropout final : public Instruction {
 public:
  explicit Dropout(const NodeContext& context)
      : site_(dropout_site(context.node(), context.index(), 1, context.shape(context.value(0)))),
        active_(is_active(context.constant(2)) && site_.probability > 0),
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
    at::Tensor kept = draw_kept(input.sizes(), frame.random, site_);
    frame.values[output_] = apply_kept(input, kept, site_.scale());
    frame.saved[saved_] = std::move(kept);
  }

  void backward(Frame& frame) const override {
    const at::Tensor& gradient = frame.gradients[output_];
    deliver(frame, target_, active_ ? apply_kept(gradient.contiguous(), frame.saved[saved_], site_.scale()) : gradient);
  }

  std::string name() const override { return "dropout"; }
  bool shares_memory(bool training) const override { return !active_ || !training; }
  int64_t saved_bytes(const RunSize& size) const override {
    return active_ ? block_bytes(element_count(value_, size.rows)) : 0;
  }
  /// The bytes are drawn row by row, then put in order.
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    return pass == Pass::kForward && !site_.rows.are_together() ? saved_bytes(size) : 0;
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

DropoutSite dropout_site(const graph::Node& node, int64_t node_index, size_t position,
                         const std::vector<int64_t>& shape) {
  const c10::IValue& constant = node.arguments.at(position).constant;
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
  return {node_index, probability, RowLayout(shape)};
}

at::Tensor draw_kept(at::IntArrayRef sizes, const RandomPosition& position, const DropoutSite& site) {
  const RowLayout::Extent extent = site.rows.extent(sizes);
  RandomPosition from = position;
  if (!site.rows.has_rows()) from.first_row = 0;
  at::Tensor kept = at::empty({extent.rows, extent.before, extent.after}, at::kByte);
  draw_rows(from, site, extent.rows, extent.row_elements(), kept.mutable_data_ptr<uint8_t>());
  return kept.transpose(0, 1).contiguous().view(sizes);
}

at::Tensor dropout_mask(at::IntArrayRef sizes, const RandomPosition& position, const DropoutSite& site,
                        at::ScalarType type) {
  return draw_kept(sizes, position, site).to(type).mul_(site.scale());
}

std::unique_ptr<Instruction> make_dropout(const NodeContext& context) { return std::make_unique<Dropout>(context); }

}  // namespace tutti::program
