// Scaled dot product attention.
#ifndef TUTTI_SRC_PROGRAM_ATTENTION_H
#define TUTTI_SRC_PROGRAM_ATTENTION_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::scaled_dot_product_attention where has_attention_formula; keeps the probabilities for backward.
std::unique_ptr<Instruction> make_attention(const NodeContext& context);

}  // namespace tutti::program

#endif
