// The compiler: grouping of nodes, gradient targets, instructions, liveness.
#include "src/program/compiler.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "src/graph/operator_call.h"
#include "src/program/autograd_island.h"
#include "src/program/call.h"
#include "src/program/gradient_flow.h"
#include "src/program/gradient_free.h"
#include "src/program/layouts.h"
#include "src/program/node_context.h"
#include "src/program/registry.h"

namespace tutti::program {
namespace {

using graph::Argument;
using graph::Graph;
using graph::GraphError;
using graph::kNoValue;
using graph::Node;
using graph::OperatorCall;
using graph::ValueId;
using graph::ValueKind;
using Mode = GradientTarget::Mode;

/// Nodes that become one instruction.
struct Unit {
  std::vector<int64_t> nodes;
  InstructionFactory factory = nullptr;  ///< null: an island
};

template <typename Visit>
void for_each_input(const Node& node, Visit visit) {
  for (const Argument& argument : node.arguments) {
    for (const ValueId id : argument.ids) {
      if (id != kNoValue) visit(id);
    }
  }
}

void check_value_id(const Graph& graph, const Node& node, ValueId id) {
  if (id < 0 || id >= static_cast<ValueId>(graph.values.size())) {
    throw GraphError(fmt::format("{}: value {} is not one of the graph's {} values. Check what built the graph.",
                                 described(node), id, graph.values.size()));
  }
}

/// The graph, every value of which is made before it is read.
const Graph& checked(const Graph& graph) {
  ValueSet made(graph.values.size());
  for (size_t id = 0; id < made.size(); ++id) made[id] = !graph.values[id].is_computed();
  for (const Node& node : graph.nodes) {
    for_each_input(node, [&](ValueId id) {
      check_value_id(graph, node, id);
      if (!made[id]) {
        throw GraphError(fmt::format("{}: reads value {} (\"{}\") before any node makes it. Reorder the nodes.",
                                     described(node), id, graph.values[id].name));
      }
    });
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      check_value_id(graph, node, id);
      made[id] = true;
    }
  }
  for (const ValueId id : graph.outputs) {
    if (id < 0 || id >= static_cast<ValueId>(made.size()) || !made[id]) {
      throw GraphError(fmt::format("output value {} is made by no node. Check what built the graph.", id));
    }
  }
  return graph;
}

/// True where a node without an instruction writes into a value: later nodes read the value by its old name, which only
/// one island over the whole graph gets right.
bool writes_in_place(const Graph& graph, const Node& node, InstructionFactory factory) {
  if (factory != nullptr) return false;
  const OperatorCall call(node);
  for (const ValueId id : call.mutated_values()) {
    const ValueKind kind = graph.values[id].kind;
    if (kind == ValueKind::kResult || kind == ValueKind::kBuffer) continue;
    throw GraphError(
        fmt::format("{}: writes into \"{}\", which is an input, a parameter or a constant. Use the operator "
                    "that makes a new tensor.",
                    described(node), graph.values[id].name));
  }
  return !call.mutated_values().empty();
}

struct Grouping {
  std::vector<Unit> units;
  bool has_writes = false;  ///< which gradients may notice
};

Grouping group_nodes(const Graph& graph, const std::vector<bool>& gradient_free, CompileOptions::Engine engine) {
  Grouping grouping;
  std::vector<Unit>& units = grouping.units;
  Unit everything;
  for (int64_t i = 0; i < static_cast<int64_t>(graph.nodes.size()); ++i) {
    InstructionFactory factory = find_factory(graph, graph.nodes[i]);
    if (factory == nullptr && gradient_free[i]) factory = make_call;
    if (writes_in_place(graph, graph.nodes[i], factory)) grouping.has_writes = true;
    everything.nodes.push_back(i);
    if (factory == nullptr && !units.empty() && units.back().factory == nullptr) {
      units.back().nodes.push_back(i);
    } else {
      units.push_back({{i}, factory});
    }
  }
  const bool is_one_island = engine == CompileOptions::Engine::kIsland || grouping.has_writes;
  if (is_one_island && !everything.nodes.empty()) units = {everything};
  return grouping;
}

class Compiler {
 public:
  Compiler(std::shared_ptr<const Graph> graph, const CompileOptions& options)
      : graph_(checked(*graph)), layouts_(graph_) {
    result_.graph = std::move(graph);
    result_.precision = options.precision;
    differentiated_ = differentiated_values(graph_);
    Grouping grouping = group_nodes(graph_, gradient_free_nodes(graph_, differentiated_, layouts_), options.engine);
    units_ = std::move(grouping.units);
    if (grouping.has_writes) differentiated_ = differentiated_ends(graph_);
  }

  CompiledGraph run() {
    list_inputs_and_outputs();
    assign_gradients();
    ProgramContext program{graph_, result_.precision, layouts_, result_.slot_count};
    for (size_t i = 0; i < units_.size(); ++i) make_instruction(program, i);
    plan_drops();
    bind_constants();
    for (ValueId id = 0; id < value_count(); ++id) {
      if (is_result(id)) result_.results.push_back(id);
    }
    return std::move(result_);
  }

 private:
  ValueId value_count() const { return static_cast<ValueId>(graph_.values.size()); }
  bool is_result(ValueId id) const { return graph_.values[id].is_computed(); }

  /// The steps' inputs (values from outside the unit) and outputs (values that are read outside it).
  void list_inputs_and_outputs() {
    std::vector<int64_t> unit_of(graph_.values.size(), -1);
    for (size_t i = 0; i < units_.size(); ++i) {
      CompiledStep& step = result_.steps.emplace_back();
      for (const int64_t node : units_[i].nodes) {
        for_each_input(graph_.nodes[node], [&](ValueId id) {
          const bool is_inner = unit_of[id] == static_cast<int64_t>(i);
          if (!is_inner && std::find(step.inputs.begin(), step.inputs.end(), id) == step.inputs.end()) {
            step.inputs.push_back(id);
          }
        });
        for (const ValueId id : graph_.nodes[node].outputs) {
          if (id != kNoValue) unit_of[id] = static_cast<int64_t>(i);
        }
      }
    }
    ValueSet is_read(graph_.values.size());
    for (const ValueId id : graph_.outputs) is_read[id] = true;
    for (const CompiledStep& step : result_.steps) {
      for (const ValueId id : step.inputs) is_read[id] = true;
    }
    for (ValueId id = 0; id < value_count(); ++id) {
      if (unit_of[id] >= 0 && is_read[id]) result_.steps[unit_of[id]].outputs.push_back(id);
    }
  }

  /// In the order of backward: the first to write a gradient overwrites, the later ones add. The caller has written
  /// those of the graph's outputs.
  void assign_gradients() {
    ValueSet is_written(graph_.values.size());
    for (const ValueId id : graph_.outputs) is_written[id] = is_result(id);
    for (size_t i = units_.size(); i-- > 0;) {
      CompiledStep& step = result_.steps[i];
      const bool any =
          std::any_of(step.outputs.begin(), step.outputs.end(), [&](ValueId id) { return differentiated_[id]; });
      if (!any) continue;
      for (const ValueId id : step.inputs) {
        if (!differentiated_[id] || !gives_gradient(units_[i], id)) continue;
        step.targets.push_back({id, is_written[id] ? Mode::kAdd : Mode::kWrite, !is_result(id)});
        is_written[id] = true;
      }
    }
    for (const graph::Parameter& parameter : graph_.parameters) {
      if (parameter.trainable && !is_written[parameter.value]) {
        result_.untouched_parameters.push_back(parameter.value);
      }
    }
  }

  bool gives_gradient(const Unit& unit, ValueId id) const {
    return std::any_of(unit.nodes.begin(), unit.nodes.end(),
                       [&](int64_t node) { return passes_gradient(graph_.nodes[node], id); });
  }

  static GradientTarget find_target(const CompiledStep& step, ValueId id) {
    const auto found = std::find_if(step.targets.begin(), step.targets.end(),
                                    [id](const GradientTarget& target) { return target.value == id; });
    return found == step.targets.end() ? GradientTarget{id, Mode::kNone, false} : *found;
  }

  /// One list per argument. A value that the node reads again gets its further gradients added.
  static std::vector<std::vector<GradientTarget>> argument_targets(const CompiledStep& step, const Node& node) {
    std::vector<std::vector<GradientTarget>> targets;
    std::vector<ValueId> seen;
    for (const Argument& argument : node.arguments) {
      std::vector<GradientTarget>& list = targets.emplace_back();
      for (const ValueId id : argument.ids) {
        GradientTarget& target = list.emplace_back(find_target(step, id));
        const bool is_repeated = std::find(seen.begin(), seen.end(), id) != seen.end();
        if (target.needed() && is_repeated) target.mode = Mode::kAdd;
        seen.push_back(id);
      }
    }
    return targets;
  }

  void make_instruction(ProgramContext& program, size_t index) {
    const Unit& unit = units_[index];
    CompiledStep& step = result_.steps[index];
    step.first_slot = result_.slot_count;
    const Node& first = graph_.nodes[unit.nodes.front()];
    if (unit.factory == nullptr) {
      IslandBoundary boundary{unit.nodes, {}, step.outputs};
      for (const ValueId id : step.inputs) boundary.inputs.push_back(find_target(step, id));
      step.instruction =
          std::make_unique<AutogradIsland>(graph_, std::move(boundary), result_.precision, result_.slot_count);
      step.description = step.instruction->name();
      result_.has_island = true;
    } else {
      OperatorCall{first};  // NOLINT(bugprone-unused-raii): refuses arguments that do not fit the schema
      const std::vector<std::vector<GradientTarget>> targets = argument_targets(step, first);
      step.instruction = unit.factory(NodeContext(program, unit.nodes.front(), targets));
      step.outputs = first.outputs;
      std::erase(step.outputs, kNoValue);
      step.description = described(first);
    }
    step.end_slot = result_.slot_count;
  }

  /// A result is dropped after its last reader. The graph's outputs stay.
  void plan_drops() {
    const auto step_count = static_cast<int64_t>(result_.steps.size());
    std::vector<int64_t> last_forward(graph_.values.size(), -1), first_backward(graph_.values.size(), step_count);
    for (int64_t i = 0; i < step_count; ++i) {
      const CompiledStep& step = result_.steps[i];
      for (const ValueId id : step.outputs) last_forward[id] = i;
      for (const ValueId id : step.inputs) last_forward[id] = i;
      if (!step.has_backward()) continue;
      for (const ValueId id : step.instruction->kept_values()) first_backward[id] = std::min(first_backward[id], i);
    }
    for (ValueId id = 0; id < value_count(); ++id) {
      const bool is_output = std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
      if (!is_result(id) || is_output || last_forward[id] < 0) continue;
      CompiledStep& last = result_.steps[last_forward[id]];
      last.dropped_after_evaluation.push_back(id);
      if (first_backward[id] == step_count) {
        last.dropped_after_training_forward.push_back(id);
      } else {
        result_.steps[first_backward[id]].dropped_after_backward.push_back(id);
      }
    }
  }

  void bind_constants() {
    for (const graph::Constant& constant : graph_.constants) {
      const bool follows = constant.tensor.scalar_type() == at::kFloat;
      result_.constants.push_back(follows ? constant.tensor.to(result_.precision) : constant.tensor);
    }
  }

  const Graph& graph_;
  const Layouts layouts_;
  CompiledGraph result_;
  std::vector<Unit> units_;
  ValueSet differentiated_;
};

}  // namespace

CompiledGraph compile_graph(std::shared_ptr<const Graph> graph, const CompileOptions& options) {
  return Compiler(std::move(graph), options).run();
}

}  // namespace tutti::program
