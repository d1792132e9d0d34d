// Pooling layers.
#ifndef TUTTI_SRC_PROGRAM_POOLING_H
#define TUTTI_SRC_PROGRAM_POOLING_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::max_pool1d, max_pool2d, max_pool3d.
std::unique_ptr<Instruction> make_max_pool(const NodeContext& context);

/// aten::avg_pool1d, avg_pool2d, avg_pool3d.
std::unique_ptr<Instruction> make_average_pool(const NodeContext& context);

/// aten::adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d.
std::unique_ptr<Instruction> make_adaptive_average_pool(const NodeContext& context);

}  // namespace tutti::program

#endif
