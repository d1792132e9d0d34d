// Max pooling row by row: for each place of the window, one pass over all outputs of a row that see it.
#include "src/program/max_pool_kernel.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tutti::program {
namespace {

constexpr int32_t kUnset = 255;

/// The outputs [begin, end) of a row whose window's column `tap` lies inside the plane.
struct Columns {
  int64_t begin, end;
};

Columns columns_that_see(const MaxPoolShape& shape, int64_t tap) {
  const int64_t shift = shape.padding[1] - tap * shape.dilation[1];  // input column = output column × stride - shift
  const int64_t stride = shape.stride[1];
  const int64_t begin = shift <= 0 ? 0 : (shift + stride - 1) / stride;
  const int64_t last = shape.width - 1 + shift;
  return {begin, last < 0 ? begin : std::max(begin, std::min(shape.output_width, last / stride + 1))};
}

/// One place of the window for `count` neighbouring outputs. A stride known to the compiler becomes vector code.
template <int kStride, typename Number>
void take_greater(const Number* input, int64_t stride, int64_t count, int32_t place, Number* best, int32_t* places) {
  const int64_t step = kStride == 0 ? stride : kStride;
  for (int64_t i = 0; i < count; ++i) {
    const Number candidate = input[i * step];
    const bool wins = (candidate > best[i]) | (candidate != candidate) | (places[i] == kUnset);
    best[i] = wins ? candidate : best[i];
    places[i] = wins ? place : places[i];
  }
}

/// The most common window, 2 × 2 side by side, in one pass over a row's two input rows.
bool is_two_by_two(const MaxPoolShape& shape) {
  using Pair = std::array<int64_t, 2>;
  return shape.kernel == Pair{2, 2} && shape.stride == Pair{2, 2} && shape.padding == Pair{0, 0} &&
         shape.dilation == Pair{1, 1} && 2 * shape.output_height <= shape.height &&
         2 * shape.output_width <= shape.width;
}

template <typename Number>
void take_if_greater(Number candidate, int32_t place, Number& best, int32_t& best_place) {
  const bool wins = (candidate > best) | (candidate != candidate);
  best = wins ? candidate : best;
  best_place = wins ? place : best_place;
}

template <typename Number>
void pool_two_by_two(const Number* __restrict upper, const Number* __restrict lower, int64_t count,
                     Number* __restrict best, int32_t* __restrict places) {
  for (int64_t i = 0; i < count; ++i) {
    Number greatest = upper[2 * i];
    int32_t place = 0;
    take_if_greater(upper[2 * i + 1], 1, greatest, place);
    take_if_greater(lower[2 * i], 2, greatest, place);
    take_if_greater(lower[2 * i + 1], 3, greatest, place);
    best[i] = greatest;
    places[i] = place;
  }
}

template <typename Number>
void pool_row(const MaxPoolShape& shape, const Number* plane, int64_t row, Number* best, int32_t* places) {
  std::fill_n(best, shape.output_width, -std::numeric_limits<Number>::infinity());
  std::fill_n(places, shape.output_width, kUnset);
  for (int64_t i = 0; i < shape.kernel[0]; ++i) {
    const int64_t input_row = row * shape.stride[0] - shape.padding[0] + i * shape.dilation[0];
    if (input_row < 0 || input_row >= shape.height) continue;
    for (int64_t j = 0; j < shape.kernel[1]; ++j) {
      const Columns columns = columns_that_see(shape, j);
      const int64_t first = columns.begin * shape.stride[1] - shape.padding[1] + j * shape.dilation[1];
      const auto take = shape.stride[1] == 1   ? take_greater<1, Number>
                        : shape.stride[1] == 2 ? take_greater<2, Number>
                                               : take_greater<0, Number>;
      take(plane + input_row * shape.width + first, shape.stride[1], columns.end - columns.begin,
           static_cast<int32_t>(i * shape.kernel[1] + j), best + columns.begin, places + columns.begin);
    }
  }
}

}  // namespace

template <typename Number>
void max_pool_forward(const MaxPoolShape& shape, const Number* input, Number* output, uint8_t* places) {
  std::vector<int32_t> row_places(static_cast<size_t>(shape.output_width));
  const bool two_by_two = is_two_by_two(shape);
  for (int64_t plane = 0; plane < shape.planes; ++plane, input += shape.height * shape.width) {
    for (int64_t row = 0; row < shape.output_height; ++row) {
      if (two_by_two) {
        const Number* upper = input + 2 * row * shape.width;
        pool_two_by_two(upper, upper + shape.width, shape.output_width, output, row_places.data());
      } else {
        pool_row(shape, input, row, output, row_places.data());
      }
      for (int64_t i = 0; i < shape.output_width; ++i) places[i] = static_cast<uint8_t>(row_places[i]);
      output += shape.output_width;
      places += shape.output_width;
    }
  }
}

template <typename Number>
void max_pool_backward(const MaxPoolShape& shape, const Number* output_gradient, const uint8_t* places,
                       Number* input_gradient) {
  std::array<int64_t, kMaxPoolPlaces> offsets{};
  for (int64_t place = 0; place < shape.kernel[0] * shape.kernel[1]; ++place) {
    offsets[place] =
        place / shape.kernel[1] * shape.dilation[0] * shape.width + place % shape.kernel[1] * shape.dilation[1];
  }
  std::fill_n(input_gradient, shape.planes * shape.height * shape.width, Number{0});
  for (int64_t plane = 0; plane < shape.planes; ++plane) {
    for (int64_t row = 0; row < shape.output_height; ++row) {
      // May lie before the plane where there is padding: an offset from it never does.
      const int64_t corner = (row * shape.stride[0] - shape.padding[0]) * shape.width - shape.padding[1];
      for (int64_t i = 0; i < shape.output_width; ++i) {
        input_gradient[corner + i * shape.stride[1] + offsets[places[i]]] += output_gradient[i];
      }
      output_gradient += shape.output_width;
      places += shape.output_width;
    }
    input_gradient += shape.height * shape.width;
  }
}

template void max_pool_forward(const MaxPoolShape&, const float*, float*, uint8_t*);
template void max_pool_forward(const MaxPoolShape&, const double*, double*, uint8_t*);
template void max_pool_backward(const MaxPoolShape&, const float*, const uint8_t*, float*);
template void max_pool_backward(const MaxPoolShape&, const double*, const uint8_t*, double*);

}  // namespace tutti::program
