// A search of all nodes.
#include "src/program/value_use.h"

#include <algorithm>

namespace tutti::program {
namespace {

bool reads(const graph::Node& node, graph::ValueId value) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [value](const graph::Argument& argument) {
    return std::find(argument.ids.begin(), argument.ids.end(), value) != argument.ids.end();
  });
}

}  // namespace

bool is_read(const graph::Graph& graph, graph::ValueId value, const graph::Node& apart_from) {
  if (value == graph::kNoValue) return false;
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end() ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const graph::Node& node) { return &node != &apart_from && reads(node, value); });
}

bool gives_one_result(const graph::Graph& graph, const graph::Node& node) {
  return node.outputs.front() != graph::kNoValue &&
         std::none_of(node.outputs.begin() + 1, node.outputs.end(),
                      [&](graph::ValueId value) { return is_read(graph, value, node); });
}

}  // namespace tutti::program
