// The nearest known name to a misspelt one, for error messages.
#ifndef TUTTI_SRC_GRAPH_NEAREST_NAME_H
#define TUTTI_SRC_GRAPH_NEAREST_NAME_H

#include <string>
#include <string_view>
#include <vector>

namespace tutti::graph {

/// The name at the least edit distance (insert, delete, change or swap neighbours); the first of equally near ones;
/// empty if `known` is.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace tutti::graph

#endif
