// Through which values of a graph gradients flow.
#ifndef TUTTI_SRC_PROGRAM_GRADIENT_FLOW_H
#define TUTTI_SRC_PROGRAM_GRADIENT_FLOW_H

#include <vector>

#include "src/graph/graph.h"

namespace tutti::program {

/// A set of values, by ValueId.
using ValueSet = std::vector<bool>;

/// The values that are functions of a trainable parameter, as far as gradients see.
ValueSet dependent_values(const graph::Graph& graph);

/// The values through which a gradient flows: they depend on a trainable parameter, and an output depends on them.
ValueSet differentiated_values(const graph::Graph& graph);

/// As differentiated_values, for a graph that writes where gradients may notice, in which a value's name does not tell
/// what it depends on: the trainable parameters and the outputs.
ValueSet differentiated_ends(const graph::Graph& graph);

/// True where the node's results, as functions of the value, have a gradient: not where the node is a detach, or reads
/// the value's shape or type only.
bool passes_gradient(const graph::Node& node, graph::ValueId value);

}  // namespace tutti::program

#endif
