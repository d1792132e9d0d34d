// From the arguments of an exported node to those of a graph's node, by the operator's schema.
#ifndef TUTTI_SRC_GRAPH_PT2_ARGUMENTS_H
#define TUTTI_SRC_GRAPH_PT2_ARGUMENTS_H

#include <ATen/core/function_schema.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/pt2_program.h"

namespace tutti::graph {

/// The values of one (sub)graph by name.
class Pt2Scope {
 public:
  /// Throws GraphError for a name that is there already.
  void bind(const std::string& name, ValueId id);
  /// Throws GraphError for a name that is not bound.
  ValueId at(const std::string& name) const;

 private:
  std::unordered_map<std::string, ValueId> ids_;
};

/// Every argument of the schema, in its order, defaults written out, the exporter's device replaced by the CPU. Throws
/// GraphError for an argument that the schema does not have, one that is missing, and one that it cannot take.
std::vector<Argument> arguments_of(const Pt2Node& node, const c10::FunctionSchema& schema, const Pt2Scope& scope);

/// The arguments of a function of numbers.
std::vector<Argument> numbers_of(const Pt2Node& node, const Pt2Scope& scope);

}  // namespace tutti::graph

#endif
