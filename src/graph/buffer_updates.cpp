// Finds copies into buffers and who made what they copy.
#include "src/graph/buffer_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti::graph {
namespace {

constexpr size_t kRunningMean = 3, kRunningVariance = 4;  // both as argument and as result

class UpdateRestorer {
 public:
  explicit UpdateRestorer(Graph& graph) : graph_(graph), readers_(graph.values.size()) {
    for (const Node& node : graph_.nodes) {
      for (const Argument& argument : node.arguments) {
        for (const ValueId id : argument.ids) {
          if (id != kNoValue) ++readers_[id];
        }
      }
    }
    for (const ValueId id : graph_.outputs) ++readers_[id];
  }

  void run() {
    for (Node& node : graph_.nodes) {
      if (restore_batch_norm(node)) continue;
      restore_counter(node);
    }
    std::vector<Node> kept;
    for (Node& node : graph_.nodes) {
      if (std::find(done_.begin(), done_.end(), copied_value(node)) == done_.end()) kept.push_back(std::move(node));
    }
    graph_.nodes = std::move(kept);
  }

 private:
  /// What a node copies into a buffer; kNoValue for any other node.
  ValueId copied_value(const Node& node) const {
    if (node.target != "aten::copy_" || node.arguments[1].kind != Argument::Kind::kValue) return kNoValue;
    const bool is_buffer = graph_.values[node.arguments[0].ids.front()].kind == ValueKind::kBuffer;
    return is_buffer ? node.arguments[1].ids.front() : kNoValue;
  }

  /// True where the value's only reader copies it into the buffer.
  bool only_updates(ValueId value, const Argument& buffer) const {
    if (value == kNoValue || readers_[value] != 1 || buffer.kind != Argument::Kind::kValue) return false;
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      return copied_value(node) == value && node.arguments[0].ids == buffer.ids;
    });
  }

  bool is_unread(ValueId value) const { return value == kNoValue || readers_[value] == 0; }

  bool restore_batch_norm(Node& node) {
    if (node.target != "aten::_native_batch_norm_legit_functional" || node.outputs.size() != 5) return false;
    for (const size_t statistic : {kRunningMean, kRunningVariance}) {
      if (!only_updates(node.outputs[statistic], node.arguments[statistic])) return false;
    }
    if (!is_unread(node.outputs[1]) || !is_unread(node.outputs[2])) return false;
    done_.insert(done_.end(), {node.outputs[kRunningMean], node.outputs[kRunningVariance]});
    node.target = "aten::batch_norm";
    node.arguments.push_back(Argument::fixed(false));  // cudnn_enabled
    node.outputs.resize(1);
    return true;
  }

  void restore_counter(Node& node) {
    if (node.target != "aten::add" || node.overload != "Tensor" || !node.arguments[1].constant.isInt()) return;
    constexpr int64_t kSumAndCopy = 2;  // later readers would see the new count
    if (!only_updates(node.outputs.front(), node.arguments[0])) return;
    if (readers_[node.arguments[0].ids.front()] != kSumAndCopy) return;
    done_.push_back(node.outputs.front());
    node.target = "aten::add_";
  }

  Graph& graph_;
  std::vector<int64_t> readers_;  ///< by ValueId
  std::vector<ValueId> done_;     ///< whose copies are no longer needed
};

}  // namespace

void restore_buffer_updates(Graph& graph) { UpdateRestorer(graph).run(); }

}  // namespace tutti::graph
