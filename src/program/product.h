// Matrix products of two tensors.
#ifndef TUTTI_SRC_PROGRAM_PRODUCT_H
#define TUTTI_SRC_PROGRAM_PRODUCT_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::matmul of any ranks, mm, bmm, mv, dot, vdot.
std::unique_ptr<Instruction> make_product(const NodeContext& context);

/// aten::addmm, baddbmm, addmv: beta × input + alpha × product.
std::unique_ptr<Instruction> make_added_product(const NodeContext& context);

/// True where all tensors are of real numbers of one type, and the factors constants.
bool product_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
