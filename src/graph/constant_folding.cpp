// Memory is told apart by the storages of a run on the meta device.
#include "src/graph/constant_folding.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/graph/operator_call.h"

namespace tutti::graph {
namespace {

/// Elements that the results of all folded nodes may have together.
constexpr int64_t kMaxElements = int64_t{1} << 24;

template <typename Visit>
void for_each_input(const Node& node, Visit visit) {
  for (const Argument& argument : node.arguments) {
    for (const ValueId id : argument.ids) {
      if (id != kNoValue) visit(id);
    }
  }
}

/// What decides whether a node may be folded, apart from its inputs.
struct NodeTraits {
  bool is_pure = false;  ///< no function of numbers, no random numbers, no memory that is left as it was found
  std::vector<ValueId> mutated;
};

NodeTraits traits_of(const Graph& graph, const Node& node) {
  if (NumberFunction::find(node.target) != nullptr) return {};
  const OperatorCall call(node);
  const bool makes_tensors = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return id == kNoValue || graph.values[id].kind == ValueKind::kResult;
  });
  const bool is_unset = node.target.find("empty") != std::string::npos;
  return {makes_tensors && !is_unset && !call.is_random(), call.mutated_values()};
}

/// The operator that makes the same tensor as `target` from nothing; none for any other.
std::optional<std::string> maker_from_nothing(const std::string& target) {
  for (const char* maker : {"zeros", "ones", "full"}) {
    if (target == fmt::format("aten::new_{}", maker) || target == fmt::format("aten::{}_like", maker)) {
      return fmt::format("aten::{}", maker);
    }
  }
  return std::nullopt;
}

/// A node that reads only type and shape of a tensor (new_zeros, zeros_like) says them itself, where the shape is
/// fixed.
void forget_pattern(const Graph& graph, Node& node) {
  const std::optional<std::string> maker = maker_from_nothing(node.target);
  if (!maker || !node.overload.empty() || node.outputs.size() != 1 || node.outputs.front() == kNoValue) return;
  const Value& made = graph.values[node.outputs.front()];
  const bool is_fixed = std::all_of(made.shape.begin(), made.shape.end(), [](int64_t size) { return size >= 0; });
  if (!is_fixed) return;
  if (node.target.ends_with("_like")) {
    node.arguments.pop_back();  // the memory format
  } else {
    node.arguments.erase(node.arguments.begin());
  }
  node.arguments.front() = Argument::fixed(made.shape);
  node.target = *maker;
  const int type = *find_operator(node).schema().argumentIndexWithName("dtype");
  node.arguments[type] = Argument::fixed(static_cast<int64_t>(made.type));
}

class Folding {
 public:
  Folding(Graph& graph, const std::vector<at::Tensor>& probed) : graph_(graph), probed_(probed) {
    for (Node& node : graph_.nodes) forget_pattern(graph_, node);
    for (const Node& node : graph_.nodes) traits_.push_back(traits_of(graph_, node));
    for (const Constant& constant : graph_.constants) given_.insert(storage_of(constant.value));
  }

  void run() {
    std::vector<std::pair<ValueId, at::Tensor>> found;
    do {
      choose_nodes();
    } while (block_conflicts() || !compute(found));
    std::vector<Node> kept;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_folded_[i]) kept.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(kept);
    for (auto& [id, tensor] : found) {
      graph_.values[id].kind = ValueKind::kConstant;
      graph_.constants.push_back({id, std::move(tensor)});
    }
  }

 private:
  using Storage = const c10::StorageImpl*;

  Storage storage_of(ValueId id) const {
    return probed_[id].defined() ? probed_[id].storage().unsafeGetStorageImpl() : nullptr;
  }
  bool is_blocked(ValueId id) const { return blocked_.contains(storage_of(id)); }

  /// Nodes that depend on constants alone and touch no blocked memory.
  void choose_nodes() {
    is_known_.assign(graph_.values.size(), false);
    is_folded_.assign(graph_.nodes.size(), false);
    for (const Constant& constant : graph_.constants) is_known_[constant.value] = true;
    int64_t elements = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      bool can_fold = traits_[i].is_pure;
      for_each_input(node, [&](ValueId id) { can_fold = can_fold && is_known_[id] && !is_blocked(id); });
      for (const ValueId id : traits_[i].mutated) can_fold = can_fold && !given_.contains(storage_of(id));
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        can_fold = can_fold && probed_[id].defined() && !is_blocked(id);
        if (can_fold) elements += probed_[id].numel();
      }
      if (!can_fold || elements > kMaxElements) continue;
      is_folded_[i] = true;
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) is_known_[id] = true;
      }
    }
  }

  /// Memory that other nodes write into, or read before the last folded write. True where some is new.
  bool block_conflicts() {
    std::unordered_map<Storage, int64_t> last_write;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId id : traits_[i].mutated) {
        if (is_folded_[i]) last_write[storage_of(id)] = static_cast<int64_t>(i);
      }
    }
    const size_t before = blocked_.size();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_folded_[i]) continue;
      for (const ValueId id : traits_[i].mutated) block(id);
      for_each_input(graph_.nodes[i], [&](ValueId id) {
        const auto write = last_write.find(storage_of(id));
        if (write != last_write.end() && write->second > static_cast<int64_t>(i)) block(id);
      });
    }
    return blocked_.size() > before;
  }

  void block(ValueId id) {
    if (storage_of(id) != nullptr && is_known_[id]) blocked_.insert(storage_of(id));
  }

  /// Runs the chosen nodes in double. False, with its memory blocked, where a result would lose digits as a constant.
  bool compute(std::vector<std::pair<ValueId, at::Tensor>>& found) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> values(graph_.values.size());
    for (const Constant& constant : graph_.constants) {
      const bool is_float = constant.tensor.scalar_type() == at::kFloat;
      values[constant.value] = is_float ? constant.tensor.to(at::kDouble) : constant.tensor;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_folded_[i]) continue;
      try {
        OperatorCall(graph_.nodes[i], at::kDouble)(values, /*training=*/true);
      } catch (const c10::Error& error) {
        throw GraphError(fmt::format("{}: {}", described(graph_.nodes[i]), error.what_without_backtrace()));
      }
    }
    found.clear();
    const size_t before = blocked_.size();
    for (const ValueId id : read_by_others()) {
      const bool is_float = graph_.values[id].type == at::kFloat;
      const at::Tensor tensor = is_float ? values[id].to(at::kFloat) : values[id].clone();
      if (is_float && !at::equal(tensor.to(at::kDouble), values[id])) block(id);
      found.emplace_back(id, tensor);
    }
    return blocked_.size() == before;
  }

  /// The results of folded nodes that are read outside.
  std::vector<ValueId> read_by_others() const {
    std::vector<bool> is_read(graph_.values.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_folded_[i]) for_each_input(graph_.nodes[i], [&](ValueId id) { is_read[id] = true; });
    }
    for (const ValueId id : graph_.outputs) is_read[id] = true;
    std::vector<ValueId> ids;
    for (size_t id = 0; id < is_read.size(); ++id) {
      if (is_read[id] && is_known_[id] && graph_.values[id].kind == ValueKind::kResult) {
        ids.push_back(static_cast<ValueId>(id));
      }
    }
    return ids;
  }

  Graph& graph_;
  const std::vector<at::Tensor>& probed_;
  std::vector<NodeTraits> traits_;       ///< by node
  std::unordered_set<Storage> given_;    ///< of the graph's own constants
  std::unordered_set<Storage> blocked_;  ///< memory that no folded node may make
  std::vector<bool> is_known_;           ///< by ValueId
  std::vector<bool> is_folded_;          ///< by node
};

}  // namespace

void fold_constants(Graph& graph, const std::vector<at::Tensor>& probed) { Folding(graph, probed).run(); }

}  // namespace tutti::graph
