// Activation functions.
#ifndef TUTTI_SRC_PROGRAM_ACTIVATION_H
#define TUTTI_SRC_PROGRAM_ACTIVATION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

std::unique_ptr<Instruction> make_relu(const NodeContext& context);        ///< aten::relu
std::unique_ptr<Instruction> make_leaky_relu(const NodeContext& context);  ///< aten::leaky_relu
std::unique_ptr<Instruction> make_gelu(const NodeContext& context);        ///< aten::gelu
std::unique_ptr<Instruction> make_silu(const NodeContext& context);        ///< aten::silu
std::unique_ptr<Instruction> make_sigmoid(const NodeContext& context);     ///< aten::sigmoid
std::unique_ptr<Instruction> make_tanh(const NodeContext& context);        ///< aten::tanh
std::unique_ptr<Instruction> make_softplus(const NodeContext& context);    ///< aten::softplus
std::unique_ptr<Instruction> make_elu(const NodeContext& context);         ///< aten::elu

}  // namespace tutti::program

#endif
