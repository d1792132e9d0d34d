// Activation functions.
#ifndef TUTTI_SRC_PROGRAM_ACTIVATION_H
#define TUTTI_SRC_PROGRAM_ACTIVATION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::celu, elu, gelu, glu, hardsigmoid, hardswish, hardtanh, leaky_relu, log_sigmoid, mish, relu, relu6, selu,
/// sigmoid, silu, softplus, tanh, threshold.
std::unique_ptr<Instruction> make_activation(const NodeContext& context);

/// aten::prelu.
std::unique_ptr<Instruction> make_prelu(const NodeContext& context);

}  // namespace tutti::program

#endif
