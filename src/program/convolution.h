// Convolutions of one, two and three dimensions, and the transposed one of two.
#ifndef TUTTI_SRC_PROGRAM_CONVOLUTION_H
#define TUTTI_SRC_PROGRAM_CONVOLUTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::conv1d, conv2d, conv3d with numbers as padding.
std::unique_ptr<Instruction> make_convolution(const NodeContext& context);

/// aten::conv_transpose2d.input.
std::unique_ptr<Instruction> make_transposed_convolution(const NodeContext& context);

}  // namespace tutti::program

#endif
