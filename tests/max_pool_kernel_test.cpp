// The own max pooling kernels: special numbers and ties as in LibTorch, gradients by finite differences.
#include "src/program/max_pool_kernel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace tutti::testing {
namespace {

using program::MaxPoolShape;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

MaxPoolShape shape_of(int64_t height, int64_t width, int64_t kernel, int64_t stride, int64_t padding,
                      int64_t dilation) {
  return {2,
          height,
          width,
          output_size(height, kernel, stride, padding, dilation),
          output_size(width, kernel, stride, padding, dilation),
          {kernel, kernel},
          {stride, stride},
          {padding, padding},
          {dilation, dilation}};
}

struct Pooled {
  at::Tensor output, places;
};

Pooled pool(const MaxPoolShape& shape, const at::Tensor& input) {
  Pooled pooled{at::empty({1, shape.planes, shape.output_height, shape.output_width}, at::kDouble), {}};
  pooled.places = at::empty(pooled.output.sizes(), at::kByte);
  program::max_pool_forward(shape, input.const_data_ptr<double>(), pooled.output.mutable_data_ptr<double>(),
                            pooled.places.mutable_data_ptr<uint8_t>());
  return pooled;
}

at::Tensor pool_backward(const MaxPoolShape& shape, const at::Tensor& gradient, const at::Tensor& places) {
  at::Tensor result = at::full({1, shape.planes, shape.height, shape.width}, kNan, at::kDouble);
  program::max_pool_backward(shape, gradient.const_data_ptr<double>(), places.const_data_ptr<uint8_t>(),
                             result.mutable_data_ptr<double>());
  return result;
}

/// Planes full of ties, infinities and NaN.
at::Tensor special_numbers(const MaxPoolShape& shape, uint32_t seed) {
  const double choices[] = {0, 1, 1, -1, kInfinity, -kInfinity, -kInfinity, kNan};
  std::mt19937 random(seed);
  at::Tensor input = at::empty({1, shape.planes, shape.height, shape.width}, at::kDouble);
  double* data = input.mutable_data_ptr<double>();
  for (int64_t i = 0; i < input.numel(); ++i) data[i] = choices[random() % std::size(choices)];
  return input;
}

TEST(MaxPoolKernel, TiesInfinitiesAndNanGoWhereLibTorchSendsThem) {
  at::manual_seed(1);
  for (const MaxPoolShape& shape :
       {shape_of(8, 10, 2, 2, 0, 1), shape_of(9, 13, 2, 2, 0, 1), shape_of(9, 8, 3, 1, 1, 1),
        shape_of(9, 9, 2, 3, 1, 2), shape_of(7, 7, 3, 2, 1, 1)}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const at::Tensor input = special_numbers(shape, seed);
      const at::IntArrayRef kernel = shape.kernel, stride = shape.stride, padding = shape.padding,
                            dilation = shape.dilation;
      const auto [expected, indices] = at::max_pool2d_with_indices(input, kernel, stride, padding, dilation);
      const Pooled pooled = pool(shape, input);
      EXPECT_TRUE(at::allclose(pooled.output, expected, 0, 0, /*equal_nan=*/true)) << pooled.output << expected;
      const at::Tensor gradient = at::randn(expected.sizes(), at::kDouble);
      const at::Tensor found = pool_backward(shape, gradient, pooled.places);
      const at::Tensor wanted =
          at::max_pool2d_with_indices_backward(gradient, input, kernel, stride, padding, dilation, false, indices);
      EXPECT_TRUE(at::allclose(found, wanted, 1e-14, 1e-14)) << found << wanted;
    }
  }
}

TEST(MaxPoolKernel, GradientEqualsFiniteDifferences) {
  at::manual_seed(2);
  const MaxPoolShape shape = shape_of(6, 7, 3, 2, 1, 1);
  const at::Tensor input = at::randperm(int64_t{2} * 6 * 7, at::kDouble).view({1, 2, 6, 7}).contiguous();  // no ties
  const at::Tensor gradient = at::randn({1, 2, shape.output_height, shape.output_width}, at::kDouble);
  const at::Tensor found = pool_backward(shape, gradient, pool(shape, input).places);
  constexpr double kStep = 0.25;
  for (int64_t i = 0; i < input.numel(); ++i) {
    at::Tensor above = input.clone(), below = input.clone();
    above.view(-1)[i] += kStep;
    below.view(-1)[i] -= kStep;
    const at::Tensor slope = (pool(shape, above).output - pool(shape, below).output) / (2 * kStep);
    EXPECT_NEAR(found.view(-1)[i].item<double>(), (slope * gradient).sum().item<double>(), 1e-12) << "place " << i;
  }
}

}  // namespace
}  // namespace tutti::testing
