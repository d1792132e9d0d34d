// The state of one run of a program.
#ifndef TUTTI_SRC_PROGRAM_FRAME_H
#define TUTTI_SRC_PROGRAM_FRAME_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/philox.h"

namespace tutti::program {

/// Which random numbers a run draws. A random value belongs to (key, step, micro-batch, node, row of the whole global
/// batch, element), so it does not depend on grains, lanes or ranks.
struct RandomPosition {
  data::RandomKey key;       ///< the model's key for this purpose ("dropout")
  uint32_t step = 0;         ///< optimizer step
  uint32_t micro_batch = 0;  ///< of gradient accumulation; < 2^16
  int64_t first_row = 0;     ///< the row of the global batch that is this grain's row 0
};

/// All the state of one run of one program over one grain: values by ValueId, gradients by ValueId, and what
/// instructions save between forward and backward. Parameters, their gradients and buffers are bound by the caller to
/// views of the model's own memory; the rest is made by instructions and dropped as soon as it is not needed any more.
struct Frame {
  std::vector<at::Tensor> values;     ///< by ValueId: inputs, parameters, buffers, constants (bound), results
  std::vector<at::Tensor> gradients;  ///< by ValueId; a parameter's is a bound view that backward writes
  std::vector<at::Tensor> saved;      ///< by the slots that instructions asked for
  RandomPosition random;
  bool training = true;  ///< false: batch norm uses running statistics, dropout passes through
};

}  // namespace tutti::program

#endif
