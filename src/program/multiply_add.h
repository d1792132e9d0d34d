// Products of two operands, added to a third.
#ifndef TUTTI_SRC_PROGRAM_MULTIPLY_ADD_H
#define TUTTI_SRC_PROGRAM_MULTIPLY_ADD_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::addcmul: added + factor × left × right, all broadcast against each other.
std::unique_ptr<Instruction> make_multiply_add(const NodeContext& context);
bool multiply_add_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
