// Softmax and its logarithm.
#ifndef TUTTI_SRC_PROGRAM_SOFTMAX_H
#define TUTTI_SRC_PROGRAM_SOFTMAX_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::softmax.int, log_softmax.int, _softmax, _log_softmax.
std::unique_ptr<Instruction> make_softmax(const NodeContext& context);
bool softmax_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
