// How many bytes a run needs, by a walk over the instructions.
#ifndef TUTTI_SRC_PROGRAM_MEMORY_PREDICTION_H
#define TUTTI_SRC_PROGRAM_MEMORY_PREDICTION_H

#include "src/program/compiler.h"

namespace tutti::program {

/// The peak of live results, gradients of results, saved tensors and scratch of a run over `rows` rows. The gradients
/// of the outputs count from the start of backward.
int64_t predict_transient_bytes(const CompiledGraph& compiled, int64_t rows, bool training);

}  // namespace tutti::program

#endif
