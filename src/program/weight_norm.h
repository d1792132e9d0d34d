// Weights as a direction and a length.
#ifndef TUTTI_SRC_PROGRAM_WEIGHT_NORM_H
#define TUTTI_SRC_PROGRAM_WEIGHT_NORM_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::_weight_norm.
std::unique_ptr<Instruction> make_weight_norm(const NodeContext& context);

}  // namespace tutti::program

#endif
