// How the values of a graph lie in memory: which are views of which, and which are contiguous.
#ifndef TUTTI_SRC_PROGRAM_LAYOUTS_H
#define TUTTI_SRC_PROGRAM_LAYOUTS_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::program {

/// Found by running views, writes and elementwise operators on tensors without data; every other operator is taken to
/// make a new contiguous tensor.
class Layouts {
 public:
  explicit Layouts(const graph::Graph& graph);

  /// For predictions of memory: operators are taken to make contiguous tensors.
  bool is_contiguous(graph::ValueId value) const { return samples_[value].is_contiguous(); }
  /// True where the two have the same memory: they are views of one tensor, or one is the other, written in place.
  bool share(graph::ValueId one, graph::ValueId other) const;

 private:
  /// Runs the node where it decides how memory lies.
  void sample(const graph::Graph& graph, const graph::Node& node);

  std::vector<at::Tensor> samples_;  ///< by ValueId: numbers, and tensors of the meta device
};

}  // namespace tutti::program

#endif
