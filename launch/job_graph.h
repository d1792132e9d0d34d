// Networks that PyTorch exported, as a job file names them.
#ifndef TUTTI_LAUNCH_JOB_GRAPH_H
#define TUTTI_LAUNCH_JOB_GRAPH_H

#include <filesystem>
#include <string>
#include <vector>

#include "data/shard.h"
#include "src/graph/graph.h"

namespace tutti::launch {

/// The archive's graph, cut down to one output: the one of this name or number (from 0), or its only one where `output`
/// is empty. Throws graph::GraphError when the archive cannot be read or has no such output.
graph::Graph read_exported_graph(const std::filesystem::path& file, const std::string& output);

/// The field that feeds each input of the graph: `named` in the inputs' order; where that is empty, the fields that
/// have the inputs' names, or for one input the only field. Throws graph::GraphError when that gives no field, or one
/// of another shape or type, for some input.
std::vector<std::string> fields_of_inputs(const graph::Graph& graph, const std::vector<std::string>& named,
                                          const std::vector<data::Field>& fields);

}  // namespace tutti::launch

#endif
