// What LibTorch's convolution kernels allocate for themselves.
#ifndef TUTTI_SRC_PROGRAM_CONVOLUTION_MEMORY_H
#define TUTTI_SRC_PROGRAM_CONVOLUTION_MEMORY_H

#include <cstdint>

#include "src/program/instruction.h"

namespace tutti::program {

/// One convolution over one grain. Places are positions in height × width × ....
struct ConvolutionSize {
  int64_t rows = 0;
  int64_t input_channels = 0, output_channels = 0;
  int64_t input_places = 0, output_places = 0;
  int64_t taps = 0;         ///< places of the kernel
  int64_t least_width = 0;  ///< the kernel's smallest dimension
  int64_t groups = 1;
  bool is_plain = false;  ///< stride and dilation 1
  bool is_padded = false;
  bool is_transposed = false;
  int64_t element_bytes = 4;
};

/// Predicted bytes beyond inputs and results. One thread, float32 by oneDNN in its blocked layout (16 channels to a
/// block), small float32 and all float64 by unfolding the input; measured with LibTorch 2.11.
int64_t convolution_scratch_bytes(const ConvolutionSize& size, Pass pass, bool wants_input_gradient);

}  // namespace tutti::program

#endif
