// Which dimension of an exported program's inputs is the batch, and which sizes it can have.
#ifndef TUTTI_SRC_GRAPH_BATCH_SIZE_H
#define TUTTI_SRC_GRAPH_BATCH_SIZE_H

#include <cstdint>
#include <vector>

#include "src/graph/pt2_program.h"

namespace tutti::graph {

/// What an exported program says of its batch.
struct Pt2Batch {
  bool is_fixed = false;
  /// Sizes to try the graph with: small ones, then the example's and multiples of it; all within the bounds of the
  /// export. One size if it is fixed.
  std::vector<int64_t> sizes;
};

/// Throws GraphError, naming the input, where the first dimensions do not agree or another dimension is dynamic.
Pt2Batch batch_of(const Pt2Program& program);

}  // namespace tutti::graph

#endif
