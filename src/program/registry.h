// Which operators have an instruction of their own.
#ifndef TUTTI_SRC_PROGRAM_REGISTRY_H
#define TUTTI_SRC_PROGRAM_REGISTRY_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

using InstructionFactory = std::unique_ptr<Instruction> (*)(const NodeContext&);

/// The factory of this operator's own instruction; null where it has none for this node.
InstructionFactory find_factory(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
