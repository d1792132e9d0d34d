// Which operators have an instruction of their own.
#ifndef TUTTI_SRC_PROGRAM_REGISTRY_H
#define TUTTI_SRC_PROGRAM_REGISTRY_H

#include <memory>

#include "src/program/gradient_flow.h"
#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

using InstructionFactory = std::unique_ptr<Instruction> (*)(const NodeContext&);

/// The factory for this node; null where it must run as an autograd island. `differentiated` are the values through
/// which gradients flow.
InstructionFactory find_factory(const graph::Graph& graph, const graph::Node& node, const ValueSet& differentiated);

}  // namespace tutti::program

#endif
