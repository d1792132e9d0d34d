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
    restore_batch_norms();
    for (Node& node : graph_.nodes) restore_counter(node);
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

  /// True for a batch norm that gives back new running statistics, of whose results the statistics of the batch are
  /// not read.
  bool is_candidate(const Node& node) const {
    return node.target == "aten::_native_batch_norm_legit_functional" && node.outputs.size() == 5 &&
           is_unread(node.outputs[1]) && is_unread(node.outputs[2]);
  }

  /// What a statistic was before all batch norms of a shared module that come before this one.
  Argument first_state(const Node& node, size_t statistic) const {
    const Argument* state = &node.arguments[statistic];
    for (auto earlier = graph_.nodes.begin(); earlier != graph_.nodes.end();) {
      const bool made_it = is_candidate(*earlier) && state->kind == Argument::Kind::kValue &&
                           earlier->outputs[statistic] == state->ids.front() &&
                           readers_[earlier->outputs[statistic]] == 1;
      if (made_it) state = &earlier->arguments[statistic];
      earlier = made_it ? graph_.nodes.begin() : std::next(earlier);
    }
    return *state;
  }

  /// What the last batch norm of a shared module makes of a statistic.
  ValueId last_state(const Node& node, size_t statistic) const {
    ValueId state = node.outputs[statistic];
    for (const Node& later : graph_.nodes) {
      const bool reads_it = state != kNoValue && readers_[state] == 1 && is_candidate(later) &&
                            later.arguments[statistic].ids == std::vector<ValueId>{state};
      if (reads_it) state = later.outputs[statistic];
    }
    return state;
  }

  void restore_batch_norms() {
    struct Found {
      Node* node;
      Argument mean, variance;
    };
    std::vector<Found> restored;
    for (Node& node : graph_.nodes) {
      if (!is_candidate(node)) continue;
      Found found{&node, first_state(node, kRunningMean), first_state(node, kRunningVariance)};
      const ValueId mean = last_state(node, kRunningMean), variance = last_state(node, kRunningVariance);
      if (!only_updates(mean, found.mean) || !only_updates(variance, found.variance)) continue;
      done_.insert(done_.end(), {mean, variance});
      restored.push_back(std::move(found));
    }
    for (auto& [node, mean, variance] : restored) {
      node->target = "aten::batch_norm";
      node->arguments[kRunningMean] = std::move(mean);
      node->arguments[kRunningVariance] = std::move(variance);
      node->arguments.push_back(Argument::fixed(false));  // cudnn_enabled
      node->outputs.resize(1);
    }
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
