#include "launch/lane_benchmark.h"

#include <ATen/ops/add.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "src/graph/layer_list.h"
#include "src/program/lane_region.h"
#include "src/program/program.h"

namespace tutti::launch {

namespace {

using Clock = std::chrono::steady_clock;

/// The least of many timings: what the lane does when nothing disturbs it.
double least_seconds(const std::function<void()>& action) {
  constexpr std::chrono::milliseconds kSpan{200};
  constexpr int kLeastRuns = 5;
  action();
  double least = 1e300;
  const auto end = Clock::now() + kSpan;
  for (int run = 0; run < kLeastRuns || Clock::now() < end; ++run) {
    const auto began = Clock::now();
    action();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count());
  }
  return least;
}

double product_rate() {
  constexpr int64_t kSize = 256;
  const at::Tensor a = at::ones({kSize, kSize}), b = at::ones({kSize, kSize});
  at::Tensor c = at::empty({kSize, kSize});
  return 2.0 * kSize * kSize * kSize / least_seconds([&] { at::mm_out(c, a, b); });
}

double convolution_rate() {
  constexpr int64_t kBatch = 32, kIn = 16, kOut = 32, kSize = 14, kKernel = 3;
  const at::Tensor input = at::ones({kBatch, kIn, kSize, kSize});
  const at::Tensor weight = at::ones({kOut, kIn, kKernel, kKernel});
  const double flops = 2.0 * kBatch * kOut * kSize * kSize * kIn * kKernel * kKernel;
  return flops / least_seconds([&] { at::conv2d(input, weight, {}, 1, 1); });
}

double memory_rate() {
  constexpr int64_t kCount = int64_t{16} << 20;  // 64 MiB each: more than the caches hold
  const at::Tensor a = at::ones({kCount}), b = at::ones({kCount});
  at::Tensor c = at::ones({kCount});
  return 3.0 * kCount * sizeof(float) / least_seconds([&] { at::add_out(c, a, b); });
}

/// A chain of layers over one value: all that takes time is calling them.
double instruction_seconds() {
  nlohmann::json layers = nlohmann::json::array();
  for (int i = 0; i < 8; ++i) layers.insert(layers.end(), {nlohmann::json{{"linear", 1}}, "tanh"});
  const auto graph = std::make_shared<graph::Graph>(graph::build_layer_list(layers, {"x", {1}}));
  const auto program = program::Program::compile(graph);
  program::Frame frame = program->make_frame();
  for (const graph::Parameter& parameter : graph->parameters) {
    const auto value = static_cast<size_t>(parameter.value);
    frame.values[value] = at::ones(graph->values[value].shape);
    frame.gradients[value] = at::empty(graph->values[value].shape);
  }
  const at::Tensor one = at::ones({1, 1});
  program::LaneRegion region(int64_t{1} << 20);
  const program::LaneRegion::Use use(region);
  const double seconds = least_seconds([&] {
    frame.values[static_cast<size_t>(graph->inputs.front())] = one;
    program->forward(frame);
    frame.gradients[static_cast<size_t>(graph->outputs.front())] = one.clone();
    program->backward(frame);
    program->clear(frame);
  });
  return seconds / static_cast<double>(2 * program->instructions().size());
}

}  // namespace

LaneSpeed measure_lane() {
  LaneSpeed lane;
  lane.product_flops_per_second = product_rate();
  lane.convolution_flops_per_second = convolution_rate();
  lane.bytes_per_second = memory_rate();
  lane.instruction_seconds = instruction_seconds();
  return lane;
}

}  // namespace tutti::launch
