// Any operator through which no gradient flows, by a call through the dispatcher.
#ifndef TUTTI_SRC_PROGRAM_CALL_H
#define TUTTI_SRC_PROGRAM_CALL_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// Masks, comparisons, arithmetic on integers and numbers, tensors made from nothing, frozen layers. Evaluation leaves
/// buffers unwritten. Requires one of gradient_free_nodes.
std::unique_ptr<Instruction> make_call(const NodeContext& context);

}  // namespace tutti::program

#endif
