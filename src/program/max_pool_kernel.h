// Own kernels of two-dimensional max pooling: one byte per output remembers where the maximum was.
#ifndef TUTTI_SRC_PROGRAM_MAX_POOL_KERNEL_H
#define TUTTI_SRC_PROGRAM_MAX_POOL_KERNEL_H

#include <array>
#include <cstdint>

namespace tutti::program {

/// Planes of [height, width] and their windows. Every window covers at least one place of the plane.
struct MaxPoolShape {
  int64_t planes = 0;  ///< batch × channels
  int64_t height = 0, width = 0;
  int64_t output_height = 0, output_width = 0;
  std::array<int64_t, 2> kernel{}, stride{}, padding{}, dilation{};  ///< height, width
};

/// Windows have at most this many places, so that one byte can number them.
inline constexpr int64_t kMaxPoolPlaces = 255;

/// output = the maximum of each window; places = its number in the window, row by row. The first of equal ones wins,
/// and a NaN wins over all, as in PyTorch. All arrays contiguous.
template <typename Number>
void max_pool_forward(const MaxPoolShape& shape, const Number* input, Number* output, uint8_t* places);

/// Adds each output's gradient to the input place that was its maximum. `input_gradient` is overwritten.
template <typename Number>
void max_pool_backward(const MaxPoolShape& shape, const Number* output_gradient, const uint8_t* places,
                       Number* input_gradient);

}  // namespace tutti::program

#endif
