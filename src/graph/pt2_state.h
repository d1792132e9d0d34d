// Parameters, buffers and constants of an archive as values of a graph.
#ifndef TUTTI_SRC_GRAPH_PT2_STATE_H
#define TUTTI_SRC_GRAPH_PT2_STATE_H

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/pt2_archive.h"

namespace tutti::graph {

/// Adds what the archive stores to a graph, by state-dict name. Names of one tensor get one value; different views of
/// the same memory are refused, since they could not be trained apart. Every fault is a GraphError which gives the
/// name.
class Pt2State {
 public:
  /// All references must outlive this object.
  Pt2State(Graph& graph, const std::vector<Pt2Weight>& weights, const std::vector<Pt2Weight>& constants);

  ValueId parameter(const std::string& name);
  ValueId buffer(const std::string& name, bool persistent);
  ValueId constant(const std::string& name);

 private:
  const Pt2Weight& weight(const std::string& name, bool is_saved) const;
  /// The value that another name of the same tensor has already. Checks that nothing else shares its memory.
  ValueId known_value(const Pt2Weight& weight) const;
  ValueId add_value(ValueKind kind, const Pt2Weight& weight);

  Graph& graph_;
  std::map<std::pair<bool, std::string>, const Pt2Weight*> weights_;  ///< by (saved with the model, name)
  std::vector<std::pair<const Pt2Weight*, ValueId>> bound_;
};

}  // namespace tutti::graph

#endif
