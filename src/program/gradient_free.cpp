// Writes are judged by all the values that share the written memory.
#include "src/program/gradient_free.h"

#include <algorithm>
#include <cstdint>

#include "src/graph/operator_call.h"

namespace tutti::program {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueKind;

template <typename Test>
bool any_input(const Node& node, Test test) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [&](const graph::Argument& argument) {
    return std::any_of(argument.ids.begin(), argument.ids.end(),
                       [&](ValueId id) { return id != kNoValue && test(id); });
  });
}

class Judge {
 public:
  Judge(const Graph& graph, const ValueSet& differentiated, const Layouts& layouts)
      : graph_(graph), differentiated_(differentiated), layouts_(layouts), dependent_(dependent_values(graph)) {}

  bool is_gradient_free(int64_t index) const {
    const Node& node = graph_.nodes[index];
    if (has_differentiated_result(node)) return false;
    const graph::OperatorCall call(node);
    if (call.is_random()) return false;
    if (call.mutated_values().empty()) return true;
    if (any_input(node, [&](ValueId id) { return dependent_[id]; })) return false;
    return call.mutated_values().size() == 1 && node.outputs.size() == 1 &&
           is_free_to_write(call.mutated_values().front(), index);
  }

 private:
  bool has_differentiated_result(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return id != kNoValue && differentiated_[id]; });
  }

  bool is_free_to_write(ValueId written, int64_t index) const {
    ValueSet shares(graph_.values.size());
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      shares[id] = layouts_.share(written, id);
      const ValueKind kind = graph_.values[id].kind;
      if (shares[id] && (differentiated_[id] || (kind != ValueKind::kResult && kind != ValueKind::kBuffer)))
        return false;
    }
    return std::none_of(graph_.nodes.begin(), graph_.nodes.begin() + index, [&](const Node& node) {
      return has_differentiated_result(node) && any_input(node, [&](ValueId id) { return shares[id]; });
    });
  }

  const Graph& graph_;
  const ValueSet& differentiated_;
  const Layouts& layouts_;
  ValueSet dependent_;
};

}  // namespace

std::vector<bool> gradient_free_nodes(const Graph& graph, const ValueSet& differentiated, const Layouts& layouts) {
  const Judge judge(graph, differentiated, layouts);
  std::vector<bool> free(graph.nodes.size());
  for (size_t i = 0; i < free.size(); ++i) free[i] = judge.is_gradient_free(static_cast<int64_t>(i));
  return free;
}

}  // namespace tutti::program
