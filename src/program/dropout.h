// Dropout with masks from keyed Philox, so that they depend on nothing but the sample's place in the global batch.
#ifndef TUTTI_SRC_PROGRAM_DROPOUT_H
#define TUTTI_SRC_PROGRAM_DROPOUT_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// Whose mask is drawn: with the random position, all that a mask depends on besides its shape.
struct DropoutSite {
  int64_t node = 0;        ///< canonical topological index, < 2^16
  double probability = 0;  ///< of dropping an element, in [0, 1]
};

/// Throws graph::GraphError naming the node unless its probability lies in [0, 1] and its index fits.
DropoutSite dropout_site(const graph::Node& node, int64_t node_index);

/// One byte per element, 1 = kept, for `rows` rows of `row_elements` elements each.
///
/// Element e of row r takes word e % 4 of philox(key, {e / 4, first_row + r, node | micro_batch << 16, step}), and is
/// kept where uniform_float(word) >= probability. `kept` has rows × row_elements bytes.
void draw_kept(const RandomPosition& position, const DropoutSite& site, int64_t rows, int64_t row_elements,
               uint8_t* kept);

/// The factor of every element: 0, or 1 / (1 - probability). The first dimension of `shape` is the rows.
at::Tensor dropout_mask(at::IntArrayRef shape, const RandomPosition& position, const DropoutSite& site,
                        at::ScalarType type);

/// aten::dropout.
std::unique_ptr<Instruction> make_dropout(const NodeContext& context);

}  // namespace tutti::program

#endif
