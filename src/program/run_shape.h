// The shape of a value in a run, with the run's batch size.
#ifndef TUTTI_SRC_PROGRAM_RUN_SHAPE_H
#define TUTTI_SRC_PROGRAM_RUN_SHAPE_H

#include <ATen/core/DimVector.h>

#include <cstdint>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/frame.h"

namespace tutti::program {

/// Known before the value is, and after it is dropped: the batch size is read off the graph's first input, which stays
/// in the frame. So instructions need not read the numbers from which exported graphs compute sizes.
class RunShape {
 public:
  /// Throws graph::GraphError where a size depends on the batch and the graph has no input.
  RunShape(const graph::Graph& graph, graph::ValueId value);

  at::DimVector operator()(const Frame& frame) const;

 private:
  std::vector<int64_t> sizes_;              ///< with kBatch where the batch is
  graph::ValueId input_ = graph::kNoValue;  ///< kNoValue where no size depends on the batch
};

}  // namespace tutti::program

#endif
