// Any operator through which no gradient flows, by a call through the dispatcher.
#ifndef TUTTI_SRC_PROGRAM_CALL_H
#define TUTTI_SRC_PROGRAM_CALL_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// Masks, comparisons, arithmetic on integers and numbers, tensors made from nothing, frozen layers. Requires that no
/// result of the node is differentiated.
std::unique_ptr<Instruction> make_call(const NodeContext& context);

/// False for operators that draw random numbers or write in place. Throws graph::GraphError where LibTorch has no such
/// operator, or the arguments do not fit it.
bool call_has_instruction(const graph::Node& node);

}  // namespace tutti::program

#endif
