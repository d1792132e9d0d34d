// Normalisation by the root mean square.
#ifndef TUTTI_SRC_PROGRAM_RMS_NORM_H
#define TUTTI_SRC_PROGRAM_RMS_NORM_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::rms_norm.
std::unique_ptr<Instruction> make_rms_norm(const NodeContext& context);

}  // namespace tutti::program

#endif
