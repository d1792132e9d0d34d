// Parts of a tensor as tensors (select, slice, split...), and the stack of tensors.
#ifndef TUTTI_SRC_PROGRAM_PARTS_H
#define TUTTI_SRC_PROGRAM_PARTS_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// Every operator whose results are views of parts of its first argument that do not overlap: select, slice, split,
/// unbind, diagonal... Backward adds each part's gradient into the same part of the whole's.
std::unique_ptr<Instruction> make_parts(const NodeContext& context);

std::unique_ptr<Instruction> make_stack(const NodeContext& context);  ///< aten::stack

}  // namespace tutti::program

#endif
