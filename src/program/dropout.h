// Dropout with masks from keyed Philox, so that they depend on nothing but the sample's place in the global batch.
#ifndef TUTTI_SRC_PROGRAM_DROPOUT_H
#define TUTTI_SRC_PROGRAM_DROPOUT_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "src/program/instruction.h"
#include "src/program/node_context.h"
#include "src/program/row_layout.h"

namespace tutti::program {

/// Whose mask is drawn: with the random position, all that a mask depends on besides its shape.
struct DropoutSite {
  int64_t node = 0;        ///< canonical topological index, < 2^16
  double probability = 0;  ///< of dropping an element, in [0, 1]
  RowLayout rows = {};     ///< of the tensor that is masked

  double scale() const { return probability < 1 ? 1 / (1 - probability) : 0; }  ///< of what is kept
};

/// The site of a node that masks a tensor of `shape` (with kBatch where the batch is), with the probability that is its
/// argument `position`. Throws graph::GraphError naming the node unless the probability lies in [0, 1] and its index
/// fits.
DropoutSite dropout_site(const graph::Node& node, int64_t node_index, size_t position,
                         const std::vector<int64_t>& shape);

/// One byte per element, 1 = kept: a contiguous tensor of `sizes`.
///
/// Element e of row r (row_layout.h) takes word e % 4 of philox(key, {e / 4, first_row + r, node | micro_batch << 16,
/// step}), and is kept where uniform_float(word) >= probability. A tensor without rows takes what the first row of the
/// whole batch would: every grain has the same.
at::Tensor draw_kept(at::IntArrayRef sizes, const RandomPosition& position, const DropoutSite& site);

/// The factor of every element: 0, or 1 / (1 - probability).
at::Tensor dropout_mask(at::IntArrayRef sizes, const RandomPosition& position, const DropoutSite& site,
                        at::ScalarType type);

/// aten::dropout, native_dropout.
std::unique_ptr<Instruction> make_dropout(const NodeContext& context);

}  // namespace tutti::program

#endif
