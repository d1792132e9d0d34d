// Aliasing is read off the storages of a run on the meta device.
#include "src/graph/write_replacement.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "src/graph/operator_call.h"
#include "src/graph/shape_probe.h"

namespace tutti::graph {
namespace {

constexpr int64_t kNever = -1;

bool has_gradient(const c10::OperatorHandle& handle) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::Autograd) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

/// What copy_ makes of its source: a view of it, to be put into a base.
Node expanded_source(const Node& copy) {
  return {"aten::expand_as", "", {copy.arguments[1], copy.arguments[0]}, copy.outputs, copy.label};
}

/// The node that makes a new tensor in place of writing into its first argument; none where there is no such operator.
/// That of aten::copy_ has no derivative.
std::optional<Node> functional_form(const Node& node) {
  if (node.target == "aten::copy_") return std::nullopt;
  if (!node.target.ends_with('_') || node.target.ends_with("__") || node.outputs.size() != 1) return std::nullopt;
  Node form = node;
  form.target.pop_back();
  const auto handle = c10::Dispatcher::singleton().findSchema({form.target, form.overload});
  if (!handle || !has_gradient(*handle)) return std::nullopt;
  const auto& expected = find_operator(node).schema().arguments();
  const auto& found = handle->schema().arguments();
  if (expected.size() != found.size()) return std::nullopt;
  for (size_t i = 0; i < found.size(); ++i) {  // the written argument's name may differ: dropout_(self), dropout(input)
    if ((i > 0 && expected[i].name() != found[i].name()) || *expected[i].type() != *found[i].type())
      return std::nullopt;
  }
  return form;
}

class Replacement {
 public:
  Replacement(Graph& graph, std::vector<at::Tensor> probed)
      : graph_(graph),
        probed_(std::move(probed)),
        made_at_(graph.values.size(), kNever),
        last_read_(graph.values.size(), kNever),
        current_(graph.values.size()) {
    for (size_t id = 0; id < current_.size(); ++id) {
      current_[id] = static_cast<ValueId>(id);
      if (probed_[id].defined()) sharing_[probed_[id].storage().unsafeGetStorageImpl()].push_back(current_[id]);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for_each_argument(graph_.nodes[i], [&](ValueId& id) { last_read_[id] = static_cast<int64_t>(i); });
      for (const ValueId id : graph_.nodes[i].outputs) {
        if (id != kNoValue) made_at_[id] = static_cast<int64_t>(i);
      }
      const std::vector<Argument>& arguments = graph_.nodes[i].arguments;
      const bool reads_value = !arguments.empty() && arguments.front().kind == Argument::Kind::kValue;
      source_of_.push_back(reads_value ? arguments.front().ids.front() : kNoValue);
    }
    for (const ValueId id : graph_.outputs) last_read_[id] = std::numeric_limits<int64_t>::max();
  }

  void run() {
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      const ValueId written = written_value(node);
      // What the written value is a part of, the nearest first, up to the last that nothing else shares.
      std::vector<ValueId> bases = written == kNoValue ? std::vector<ValueId>() : bases_of(written);
      while (!bases.empty() && !is_alone(bases.back(), static_cast<int64_t>(i))) bases.pop_back();
      std::optional<Node> form;
      if (!bases.empty() && node.target == "aten::copy_") {
        form = matching(expanded_source(node), written);
      } else if (!bases.empty() || (written != kNoValue && is_alone(written, static_cast<int64_t>(i)))) {
        form = matching(functional_form(node), written);
      }
      if (form) node = std::move(*form);
      for_each_argument(node, [&](ValueId& id) { id = current_[id]; });
      nodes.push_back(node);
      if (form) {
        put_back(written, bases, nodes);
      } else if (written != kNoValue && graph_.values[current_[written]].kind == ValueKind::kBuffer) {
        read_buffer_itself(node, written);
      }
    }
    graph_.nodes = std::move(nodes);
    for (ValueId& id : graph_.outputs) id = current_[id];
  }

 private:
  template <typename Visit>
  static void for_each_argument(Node& node, Visit visit) {
    for (Argument& argument : node.arguments) {
      for (ValueId& id : argument.ids) {
        if (id != kNoValue) visit(id);
      }
    }
  }

  static ValueId written_value(const Node& node) {
    if (NumberFunction::find(node.target) != nullptr || node.arguments.empty()) return kNoValue;
    const OperatorCall call(node);
    const bool is_first = call.mutated_values().size() == 1 && node.arguments.front().ids == call.mutated_values();
    return is_first ? call.mutated_values().front() : kNoValue;
  }

  const std::vector<ValueId>& sharing_with(ValueId id) const {
    return sharing_.at(probed_[id].storage().unsafeGetStorageImpl());
  }

  /// True where nothing that is older than node `index` and read after it shares the value's memory, other names of the
  /// same tensor aside. What is made later of such a name is made of the new tensor.
  bool is_alone(ValueId written, int64_t index) const {
    for (const ValueId id : sharing_with(written)) {
      const ValueKind kind = graph_.values[id].kind;
      if (kind != ValueKind::kResult && kind != ValueKind::kInput) return false;
      if (made_at_[id] <= index && last_read_[id] > index && !probed_[id].is_same(probed_[written])) return false;
    }
    return true;
  }

  /// The form of a write, if it makes a tensor of the written one's shape and type.
  std::optional<Node> matching(std::optional<Node> form, ValueId written) const {
    if (!form || form->outputs.front() == kNoValue) return std::nullopt;
    std::vector<at::Tensor> values = probed_;
    try {
      probe_node(*form, values);
    } catch (const GraphError&) {
      return std::nullopt;
    }
    const at::Tensor& made = values[form->outputs.front()];
    const bool matches =
        made.sizes() == probed_[written].sizes() && made.scalar_type() == probed_[written].scalar_type();
    return matches ? form : std::nullopt;
  }

  /// The node that made a value as a part of its first argument; none for any other value.
  const Node* part_of(ValueId id) const {
    if (made_at_[id] == kNever) return nullptr;
    const Node& node = graph_.nodes[made_at_[id]];
    const bool is_part = (node.target == "aten::slice" && node.overload == "Tensor") ||
                         (node.target == "aten::select" && node.overload == "int");
    return is_part ? &node : nullptr;
  }

  std::vector<ValueId> bases_of(ValueId id) const {
    std::vector<ValueId> bases;
    for (const Node* node = part_of(id); node != nullptr; node = part_of(bases.back())) {
      bases.push_back(source_of_[made_at_[bases.empty() ? id : bases.back()]]);
    }
    return bases;
  }

  /// Makes, of the tensor that stands for the written one now, what stands for each of its bases.
  void put_back(ValueId written, const std::vector<ValueId>& bases, std::vector<Node>& nodes) {
    ValueId part = written, made = nodes.back().outputs.front();
    for (const ValueId base : bases) {
      Node scatter = *part_of(part);
      scatter.target += "_scatter";
      scatter.overload.clear();
      scatter.arguments.front() = Argument::of(current_[base]);
      scatter.arguments.insert(scatter.arguments.begin() + 1, Argument::of(made));
      graph_.values.push_back(graph_.values[base]);
      graph_.values.back().kind = ValueKind::kResult;
      made = std::ssize(graph_.values) - 1;
      scatter.outputs = {made};
      nodes.push_back(std::move(scatter));
      part = base;
    }
    rename(part, made);
  }

  void rename(ValueId written, ValueId made) {
    for (const ValueId id : sharing_with(written)) {
      if (probed_[id].is_same(probed_[written])) current_[id] = made;
    }
  }

  /// What a write returns is the buffer: a further write into it is one into the buffer, which evaluation leaves out.
  void read_buffer_itself(const Node& node, ValueId buffer) {
    for (const ValueId id : node.outputs) {
      if (id != kNoValue && probed_[id].is_same(probed_[buffer])) current_[id] = current_[buffer];
    }
  }

  Graph& graph_;
  std::vector<at::Tensor> probed_;
  std::vector<int64_t> made_at_;    ///< by ValueId: index of the node that makes it
  std::vector<ValueId> source_of_;  ///< by node: the value that is its first argument, as the archive names it
  std::vector<int64_t> last_read_;  ///< by ValueId: index of the last node that reads it
  std::vector<ValueId> current_;    ///< by ValueId: what holds its tensor after the nodes so far
  std::unordered_map<const c10::StorageImpl*, std::vector<ValueId>> sharing_;
};

}  // namespace

void replace_writes(Graph& graph, std::vector<at::Tensor> probed) { Replacement(graph, std::move(probed)).run(); }

}  // namespace tutti::graph
