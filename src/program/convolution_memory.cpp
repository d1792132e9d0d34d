// The arithmetic of convolution workspaces.
#include "src/program/convolution_memory.h"

#include <algorithm>

#include "src/program/lane_region.h"

namespace tutti::program {
namespace {

/// Which kernel LibTorch takes for one thread: its `use_mkldnn` in ATen/native/Convolution.cpp.
bool runs_in_onednn(const ConvolutionSize& size) {
  if (size.element_bytes != 4) return false;
  const bool is_worth_it = !size.is_plain || size.rows >= 16 || size.taps != 1;
  const bool is_large = size.groups > 1 || size.least_width > 3 || size.rows > 1 ||
                        size.rows * size.input_channels * size.input_places > 20480;
  return is_worth_it && is_large;
}

int64_t whole_channel_blocks(int64_t channels) { return (channels + 15) / 16 * 16; }

/// oneDNN copies each tensor into its blocked layout, except an image of up to 3 channels as input.
int64_t onednn_bytes(const ConvolutionSize& size, Pass pass, bool wants_input_gradient) {
  const auto blocked = [&](int64_t channels, int64_t places) {
    return block_bytes(size.rows * whole_channel_blocks(channels) * places * size.element_bytes);
  };
  const int64_t output = block_bytes(size.rows * size.output_channels * size.output_places * size.element_bytes);
  const int64_t input = block_bytes(size.rows * size.input_channels * size.input_places * size.element_bytes);
  const int64_t blocked_output = blocked(size.output_channels, size.output_places);
  const int64_t blocked_input = blocked(size.input_channels, size.input_places);
  const bool keeps_input = size.input_channels <= 3 && size.taps > 1;
  const int64_t weight = block_bytes(whole_channel_blocks(size.input_channels / size.groups) *
                                     whole_channel_blocks(size.output_channels) * size.taps * size.element_bytes);
  const int64_t read_input = keeps_input ? 0 : blocked_input;
  const int64_t subsampled = size.taps == 1 && !size.is_plain ? blocked_output : 0;  // the places that a stride leaves
  if (pass == Pass::kForward) {
    return subsampled + std::max(read_input + weight + blocked_output - output, blocked_output);
  }
  const int64_t for_weight = blocked_output + read_input + weight + subsampled;
  const int64_t for_input = blocked_output + blocked_input + weight - input;
  return wants_input_gradient ? std::max(for_weight, for_input) : for_weight;
}

/// The unfolded input of the whole grain: for each output place (transposed: input place) a column of taps.
int64_t unfolded_bytes(const ConvolutionSize& size) {
  if (size.taps == 1 && size.is_plain && !size.is_padded) return 0;
  const int64_t places = size.is_transposed ? size.input_places : size.output_places;
  const int64_t channels = (size.is_transposed ? size.output_channels : size.input_channels) / size.groups;
  return block_bytes(size.rows * channels * places * size.taps * size.element_bytes);
}

}  // namespace

int64_t convolution_scratch_bytes(const ConvolutionSize& size, Pass pass, bool wants_input_gradient) {
  return runs_in_onednn(size) ? onednn_bytes(size, pass, wants_input_gradient) : unfolded_bytes(size);
}

}  // namespace tutti::program
