// From an archive of torch.export.save (.pt2) to a graph.
#ifndef TUTTI_SRC_GRAPH_IMPORT_PT2_H
#define TUTTI_SRC_GRAPH_IMPORT_PT2_H

#include <filesystem>
#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

struct ImportedModel {
  Graph graph;  ///< inputs and outputs in the order of the model's call, values named as in the exported program
  /// Returned tensors that no loss can take, which are no outputs: those whose first dimension is not the batch.
  std::vector<std::string> left_out;
};

/// Reads the archive of a model that was exported in training mode, with a dynamic first dimension of its inputs (any
/// batch size) or a fixed one (Graph::fixed_batch). Throws GraphError, naming the file, the node, what was expected,
/// what was found and what to do.
ImportedModel import_pt2(const std::filesystem::path& file);

}  // namespace tutti::graph

#endif
