// How the values of a graph lie in memory: which are views of which, and which are contiguous.
#ifndef TUTTI_SRC_PROGRAM_LAYOUTS_H
#define TUTTI_SRC_PROGRAM_LAYOUTS_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::program {

/// Found by running views and elementwise operators on tensors without data; every other operator is taken to make a
/// new contiguous tensor. Predictions of memory rest on this, results never do.
class Layouts {
 public:
  explicit Layouts(const graph::Graph& graph);

  bool is_contiguous(graph::ValueId value) const { return samples_[value].is_contiguous(); }
  /// True where the two have the same memory.
  bool share(graph::ValueId one, graph::ValueId other) const;

 private:
  std::vector<at::Tensor> samples_;  ///< by ValueId: numbers, and tensors of the meta device
};

}  // namespace tutti::program

#endif
