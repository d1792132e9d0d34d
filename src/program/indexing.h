// Elements and rows chosen by tensors of indices.
#ifndef TUTTI_SRC_PROGRAM_INDEXING_H
#define TUTTI_SRC_PROGRAM_INDEXING_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

std::unique_ptr<Instruction> make_index_select(const NodeContext& context);  ///< aten::index_select
std::unique_ptr<Instruction> make_gather(const NodeContext& context);        ///< aten::gather
std::unique_ptr<Instruction> make_index(const NodeContext& context);  ///< aten::index.Tensor: x[:, rows, columns]

}  // namespace tutti::program

#endif
