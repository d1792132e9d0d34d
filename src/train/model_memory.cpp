#include "src/train/model_memory.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "src/program/region_poison.h"

namespace tutti::train {

namespace {

at::ScalarType stored_type(at::ScalarType type, at::ScalarType precision) {
  return type == at::kFloat ? precision : type;
}

int64_t buffer_bytes(const graph::Buffer& buffer, at::ScalarType precision) {
  const at::ScalarType type = stored_type(buffer.initial.scalar_type(), precision);
  return aligned_bytes(buffer.initial.numel() * static_cast<int64_t>(c10::elementSize(type)));
}

/// Bytes of one grain's set of buffers.
int64_t block_bytes(const graph::Graph& graph, at::ScalarType precision) {
  int64_t bytes = 0;
  for (const graph::Buffer& buffer : graph.buffers) bytes += buffer_bytes(buffer, precision);
  return bytes;
}

int64_t all_block_bytes(const ModelLayout& layout, const graph::Graph& graph) {
  return (layout.grain_count + 1) * block_bytes(graph, layout.precision);
}

/// The buffers that lie one behind the other in `block`.
std::vector<at::Tensor> buffers_in(std::byte* block, const graph::Graph& graph, at::ScalarType precision) {
  std::vector<at::Tensor> views;
  for (const graph::Buffer& buffer : graph.buffers) {
    const at::ScalarType type = stored_type(buffer.initial.scalar_type(), precision);
    views.push_back(at::from_blob(block, buffer.initial.sizes(), at::TensorOptions(type)));
    views.back().copy_(buffer.initial);
    block += buffer_bytes(buffer, precision);
  }
  return views;
}

/// Calls `action(begin, bytes)` for the padding behind each segment of a flat tensor.
template <typename Action>
void for_each_padding(const ModelLayout& layout, const at::Tensor& flat, const Action& action) {
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(layout.precision));
  const auto* data = static_cast<const std::byte*>(flat.const_data_ptr());
  for (size_t s = 0; s < layout.segments.size(); ++s) {
    const int64_t begin = layout.segments[s].offset + layout.segments[s].count;
    const int64_t end = s + 1 < layout.segments.size() ? layout.segments[s + 1].offset : layout.element_count;
    action(data + begin * element_bytes, static_cast<size_t>((end - begin) * element_bytes));
  }
}

int64_t total(const std::vector<ModelLayout>& layouts, int64_t (*bytes)(const ModelLayout&)) {
  int64_t sum = 0;
  for (const ModelLayout& layout : layouts) sum += bytes(layout);
  return sum;
}

int64_t total_block_bytes(const std::vector<ModelLayout>& layouts, const std::vector<const graph::Graph*>& graphs) {
  int64_t sum = 0;
  for (size_t i = 0; i < layouts.size(); ++i) sum += range_bytes(all_block_bytes(layouts[i], *graphs[i]));
  return sum;
}

}  // namespace

ModelLayout ModelLayout::of(const graph::Graph& graph, at::ScalarType precision, int64_t moment_count,
                            int64_t gradient_count, int64_t grain_count) {
  ModelLayout layout{precision, {}, 0, moment_count, gradient_count, grain_count};
  const int64_t granule = kSegmentAlignment / static_cast<int64_t>(c10::elementSize(precision));
  for (const graph::Parameter& parameter : graph.parameters) {
    const auto& shape = graph.values[static_cast<size_t>(parameter.value)].shape;
    const int64_t count = c10::multiply_integers(shape);
    layout.segments.push_back({layout.element_count, count});
    layout.element_count += (count + granule - 1) / granule * granule;
  }
  return layout;
}

FusedBuffers::FusedBuffers(const std::vector<ModelLayout>& layouts, const std::vector<const graph::Graph*>& graphs)
    : parameters("parameters", total(layouts, [](const ModelLayout& l) { return range_bytes(l.flat_bytes()); })),
      gradients("gradients",
                total(layouts, [](const ModelLayout& l) { return l.gradient_count * range_bytes(l.flat_bytes()); })),
      buffers("buffers", total_block_bytes(layouts, graphs)) {
  int64_t most = 0;
  for (const ModelLayout& layout : layouts) most = std::max(most, layout.moment_count);
  for (int64_t moment = 0; moment < most; ++moment) {
    int64_t bytes = 0;
    for (const ModelLayout& layout : layouts)
      bytes += moment < layout.moment_count ? range_bytes(layout.flat_bytes()) : 0;
    moments.emplace_back("moment " + std::to_string(moment), bytes);
  }
}

int64_t FusedBuffers::size_bytes() const {
  int64_t bytes = parameters.size_bytes() + gradients.size_bytes() + buffers.size_bytes();
  for (const FusedBuffer& moment : moments) bytes += moment.size_bytes();
  return bytes;
}

int64_t FusedBuffers::bytes_of(const ModelLayout& layout, const graph::Graph& graph) {
  return (1 + layout.gradient_count + layout.moment_count) * range_bytes(layout.flat_bytes()) +
         range_bytes(all_block_bytes(layout, graph));
}

ModelMemory::ModelMemory(ModelLayout model_layout, const graph::Graph& graph, FusedBuffers& fused)
    : layout(std::move(model_layout)), parameters(fused.parameters.take({layout.element_count}, layout.precision)) {
  const auto views_of = [&](const at::Tensor& flat) {
    std::vector<at::Tensor> views;
    for (size_t i = 0; i < graph.parameters.size(); ++i) views.push_back(view(flat, graph, static_cast<int64_t>(i)));
    return views;
  };
  parameter_views = views_of(parameters);
  for (int64_t i = 0; i < layout.gradient_count; ++i) {
    gradients.push_back(fused.gradients.take({layout.element_count}, layout.precision));
    gradient_views.push_back(views_of(gradients.back()));
  }
  for (int64_t i = 0; i < layout.moment_count; ++i) {
    moments.push_back(fused.moments[static_cast<size_t>(i)].take({layout.element_count}, layout.precision));
  }
  const int64_t block = block_bytes(graph, layout.precision);
  grain_blocks = fused.buffers.take({layout.grain_count + 1, block}, at::kByte);
  auto* begin = reinterpret_cast<std::byte*>(grain_blocks.data_ptr());
  for (int64_t grain = 0; grain < layout.grain_count; ++grain) {
    grain_buffers.push_back(buffers_in(begin + grain * block, graph, layout.precision));
  }
  averaged_buffers = buffers_in(begin + layout.grain_count * block, graph, layout.precision);
  guard_padding(parameters);
  for (const at::Tensor& moment : moments) guard_padding(moment);
}

void ModelMemory::guard_padding(const at::Tensor& flat) const { for_each_padding(layout, flat, program::poison); }
void ModelMemory::open_padding(const at::Tensor& flat) const { for_each_padding(layout, flat, program::unpoison); }

at::Tensor ModelMemory::view(const at::Tensor& flat, const graph::Graph& graph, int64_t parameter) const {
  const Segment& segment = layout.segments[static_cast<size_t>(parameter)];
  const auto& value = graph.values[static_cast<size_t>(graph.parameters[static_cast<size_t>(parameter)].value)];
  auto* begin = static_cast<std::byte*>(flat.data_ptr()) +
                segment.offset * static_cast<int64_t>(c10::elementSize(layout.precision));
  return at::from_blob(begin, value.shape, at::TensorOptions(layout.precision));
}

}  // namespace tutti::train
