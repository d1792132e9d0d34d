// The embedding table.
#ifndef TUTTI_SRC_PROGRAM_EMBEDDING_H
#define TUTTI_SRC_PROGRAM_EMBEDDING_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::embedding. The gradient is dense, whatever the node's `sparse` says.
std::unique_ptr<Instruction> make_embedding(const NodeContext& context);

}  // namespace tutti::program

#endif
