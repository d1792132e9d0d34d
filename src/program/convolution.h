// Convolutions and transposed convolutions of one, two and three dimensions.
#ifndef TUTTI_SRC_PROGRAM_CONVOLUTION_H
#define TUTTI_SRC_PROGRAM_CONVOLUTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::conv1d, conv2d, conv3d with numbers as padding.
std::unique_ptr<Instruction> make_convolution(const NodeContext& context);

/// aten::convolution.
std::unique_ptr<Instruction> make_general_convolution(const NodeContext& context);

/// aten::conv1d.padding, conv2d.padding, conv3d.padding: "valid", and "same" where both sides get as much.
std::unique_ptr<Instruction> make_padded_convolution(const NodeContext& context);
bool padded_convolution_has_instruction(const graph::Graph& graph, const graph::Node& node);

/// aten::conv_transpose1d, conv_transpose2d.input, conv_transpose3d.input.
std::unique_ptr<Instruction> make_transposed_convolution(const NodeContext& context);

}  // namespace tutti::program

#endif
