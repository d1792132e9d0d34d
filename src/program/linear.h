// The fully connected layer.
#ifndef TUTTI_SRC_PROGRAM_LINEAR_H
#define TUTTI_SRC_PROGRAM_LINEAR_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::linear.
std::unique_ptr<Instruction> make_linear(const NodeContext& context);

}  // namespace tutti::program

#endif
