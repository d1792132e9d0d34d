// Inputs, then node by node, then outputs.
#include "src/graph/pt2_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/graph/operator_call.h"
#include "src/graph/pt2_arguments.h"
#include "src/graph/pt2_state.h"

namespace tutti::graph {
namespace {

constexpr std::string_view kOperatorPrefix = "torch.ops.";
constexpr std::string_view kHigherOrderPrefix = "torch.ops.higher_order.";
constexpr std::string_view kGradModeBlock = "torch.ops.higher_order.wrap_with_set_grad_enabled";
constexpr std::string_view kAutocastBlock = "torch.ops.higher_order.wrap_with_autocast";

/// Checks of the exporter's own assumptions, which the import makes itself or replaces (the device).
constexpr std::array kDroppedTargets{
    std::string_view("torch.ops.aten._assert_tensor_metadata.default"),
    std::string_view("torch.ops.aten._assert_scalar.default"),
    std::string_view("torch.ops.aten._assert_async.msg"),
    std::string_view("torch.ops.aten.sym_constrain_range.default"),
    std::string_view("torch.ops.aten.sym_constrain_range_for_size.default"),
};

/// "torch.ops.aten.add_.Tensor" is aten::add_.Tensor, "_operator.mul" is _operator::mul.
void set_target(Node& node, std::string_view target) {
  const bool is_operator = target.starts_with(kOperatorPrefix);
  if (is_operator) target.remove_prefix(kOperatorPrefix.size());
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) throw GraphError("expected a target such as torch.ops.aten.relu.default");
  const std::string_view name = target.substr(dot + 1);
  const size_t overload = is_operator ? name.rfind('.') : std::string_view::npos;
  node.target = fmt::format("{}::{}", target.substr(0, dot), name.substr(0, overload));
  if (overload == std::string_view::npos) return;
  node.overload = name.substr(overload + 1);
  if (node.overload == "default") node.overload.clear();
}

class Translator {
 public:
  Translator(const Pt2Program& program, const std::vector<Pt2Weight>& weights, const std::vector<Pt2Weight>& constants)
      : program_(program), state_(graph_, weights, constants) {}

  Graph run() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) add_input(program_.inputs[i], program_.graph.inputs[i]);
    add_nodes(program_.graph, scope_);
    for (size_t i = 0; i < program_.outputs.size(); ++i) add_output(program_.outputs[i], program_.graph.outputs[i]);
    return std::move(graph_);
  }

 private:
  ValueId add_value(Value value) {
    graph_.values.push_back(std::move(value));
    return std::ssize(graph_.values) - 1;
  }

  void add_input(const Pt2Input& spec, const Pt2Argument& argument) {
    if (spec.kind == Pt2Input::Kind::kConstantInput) return;
    const auto* tensor = std::get_if<Pt2Tensor>(&argument);
    if (tensor == nullptr) {
      if (spec.kind == Pt2Input::Kind::kUserInput && std::holds_alternative<std::monostate>(argument)) return;
      throw GraphError(
          fmt::format("input '{}' is no tensor. Export the model with tensors as inputs; Python numbers "
                      "and texts are fixed by the export.",
                      spec.state_name));
    }
    switch (spec.kind) {
      case Pt2Input::Kind::kUserInput:
        add_user_input(tensor->name);
        break;
      case Pt2Input::Kind::kParameter:
        scope_.bind(tensor->name, state_.parameter(spec.state_name));
        break;
      case Pt2Input::Kind::kBuffer:
        scope_.bind(tensor->name, state_.buffer(spec.state_name, spec.persistent));
        break;
      default:
        scope_.bind(tensor->name, state_.constant(spec.state_name));
    }
  }

  void add_user_input(const std::string& name) {
    const Pt2TensorMeta& meta = program_.graph.input_metas.at(name);
    Value value{ValueKind::kInput, name, meta.type, {}};
    for (const Pt2Size& size : meta.sizes) value.shape.push_back(size.known ? *size.known : size.hint.value_or(2));
    const ValueId id = add_value(std::move(value));
    graph_.inputs.push_back(id);
    scope_.bind(name, id);
  }

  void add_nodes(const Pt2Graph& graph, Pt2Scope& scope) {
    for (const Pt2Node& node : graph.nodes) {
      try {
        add_node(node, scope);
      } catch (const GraphError& error) {
        throw GraphError(fmt::format("node '{}' ({}): {}", node.name, node.target, error.what()));
      }
    }
  }

  void add_node(const Pt2Node& source, Pt2Scope& scope) {
    if (std::find(kDroppedTargets.begin(), kDroppedTargets.end(), source.target) != kDroppedTargets.end()) return;
    if (source.target == kGradModeBlock) return add_grad_mode_block(source, scope);
    if (source.target == kAutocastBlock) return add_autocast_block(source, scope);
    if (source.target.starts_with(kHigherOrderPrefix)) {
      throw GraphError(
          "this higher-order operator is not read. Remove it (control flow, checkpointing by hand) from the "
          "model before the export.");
    }
    Node node;
    set_target(node, source.target);
    node.label = source.module_path.empty() ? source.name : source.module_path + " " + source.name;
    const NumberFunction* function = NumberFunction::find(node.target);
    node.arguments =
        function != nullptr ? numbers_of(source, scope) : arguments_of(source, find_operator(node).schema(), scope);
    for (const Pt2Argument& output : source.outputs) bind_output(output, node, scope);
    OperatorCall{node};  // refuses arguments that do not fit the schema
    graph_.nodes.push_back(std::move(node));
  }

  void bind_output(const Pt2Argument& output, Node& node, Pt2Scope& scope) {
    const auto add = [&](const std::string& name, ValueKind kind) {
      const ValueId id = add_value({kind, name, at::kFloat, {}});
      scope.bind(name, id);
      node.outputs.push_back(id);
    };
    if (const auto* tensor = std::get_if<Pt2Tensor>(&output)) {
      add(tensor->name, ValueKind::kResult);
    } else if (const auto* tensors = std::get_if<Pt2Tensors>(&output)) {
      if (find_operator(node).schema().returns().size() != 1) throw GraphError("it returns a list among other results");
      for (const auto& name : tensors->names) {
        if (name) {
          add(*name, ValueKind::kResult);
        } else {
          node.outputs.push_back(kNoValue);
        }
      }
    } else if (const auto* number = std::get_if<Pt2Number>(&output);
               number != nullptr && std::holds_alternative<Pt2Symbol>(*number)) {
      add(std::get<Pt2Symbol>(*number).name, ValueKind::kNumber);
    } else {
      node.outputs.push_back(kNoValue);
    }
  }

  /// The name by which a value is known, if the argument is one.
  static const std::string* name_of(const Pt2Argument& argument) {
    if (const auto* tensor = std::get_if<Pt2Tensor>(&argument)) return &tensor->name;
    const auto* number = std::get_if<Pt2Number>(&argument);
    const auto* symbol = number == nullptr ? nullptr : std::get_if<Pt2Symbol>(number);
    return symbol == nullptr ? nullptr : &symbol->name;
  }

  ValueId detached(ValueId id, const std::string& label) {
    const Value& value = graph_.values[id];
    if (value.kind != ValueKind::kResult && value.kind != ValueKind::kParameter) return id;
    const ValueId result = add_value({ValueKind::kResult, value.name + "_detached", at::kFloat, {}});
    graph_.nodes.push_back({"aten::detach", "", {Argument::of(id)}, {result}, label});
    return result;
  }

  /// The subgraph that is an operator's argument `position`, with an operand for each of its inputs after it.
  static const Pt2Graph& body_at(const Pt2Node& node, size_t position) {
    const auto* body = node.inputs.size() <= position
                           ? nullptr
                           : std::get_if<std::shared_ptr<const Pt2Graph>>(&node.inputs[position].argument);
    if (body == nullptr || node.inputs.size() - position - 1 != (*body)->inputs.size()) {
      throw GraphError("expected a subgraph and an operand for each of the subgraph's inputs");
    }
    return **body;
  }

  static bool flag_at(const Pt2Node& node, size_t position) {
    const auto* number =
        node.inputs.size() <= position ? nullptr : std::get_if<Pt2Number>(&node.inputs[position].argument);
    const auto* flag = number == nullptr ? nullptr : std::get_if<bool>(number);
    if (flag == nullptr) throw GraphError(fmt::format("expected a flag as argument {}", position));
    return *flag;
  }

  /// wrap_with_set_grad_enabled(enabled, subgraph, operands...): without gradients, nothing inside depends on what
  /// needs one, so it is enough to detach what goes in.
  void add_grad_mode_block(const Pt2Node& node, Pt2Scope& scope) {
    const bool has_gradient = flag_at(node, 0);
    if (has_gradient && is_detached_) throw GraphError("gradients are enabled inside a block without gradients");
    const bool was_detached = std::exchange(is_detached_, is_detached_ || !has_gradient);
    add_block(node, body_at(node, 1), has_gradient, scope);
    is_detached_ = was_detached;
  }

  /// wrap_with_autocast(device, type, enabled, cache_enabled, subgraph, operands...): one that is off changes nothing.
  void add_autocast_block(const Pt2Node& node, Pt2Scope& scope) {
    if (flag_at(node, 2)) {
      throw GraphError(
          "autocast is on in this block, which would train it in another precision than the job file says. Remove it "
          "from the model before the export.");
    }
    add_block(node, body_at(node, 4), /*has_gradient=*/true, scope);
  }

  /// A subgraph's nodes in place of the node, whose last arguments are its operands.
  void add_block(const Pt2Node& node, const Pt2Graph& body, bool has_gradient, Pt2Scope& scope) {
    const size_t first_operand = node.inputs.size() - body.inputs.size();
    Pt2Scope inner;
    std::unordered_map<ValueId, ValueId> original_of;  // what a value was before it was detached
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const std::string* name = name_of(body.inputs[i]);
      const std::string* operand = name_of(node.inputs[first_operand + i].argument);
      if (name == nullptr) continue;
      if (operand == nullptr) throw GraphError(fmt::format("expected a value for the subgraph's input '{}'", *name));
      const ValueId id = scope.at(*operand);
      const ValueId entered = has_gradient ? id : detached(id, node.name);
      original_of[entered] = id;
      inner.bind(*name, entered);
    }
    add_nodes(body, inner);
    bind_results(node, body, inner, original_of, scope);
  }

  void bind_results(const Pt2Node& node, const Pt2Graph& body, const Pt2Scope& inner,
                    const std::unordered_map<ValueId, ValueId>& original_of, Pt2Scope& scope) {
    std::vector<std::string> names;
    for (const Pt2Argument& output : node.outputs) {
      if (const auto* list = std::get_if<Pt2Tensors>(&output)) {
        for (const auto& name : list->names) names.push_back(name.value_or(""));
      } else {
        const std::string* name = name_of(output);
        names.push_back(name == nullptr ? "" : *name);
      }
    }
    if (names.size() != body.outputs.size()) {
      throw GraphError(fmt::format("the subgraph has {} outputs, the node {}", body.outputs.size(), names.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string* result = name_of(body.outputs[i]);
      if (names[i].empty() || result == nullptr) continue;
      const ValueId id = inner.at(*result);
      const auto original = original_of.find(id);  // an operand that is passed through keeps its gradient
      scope.bind(names[i], original == original_of.end() ? id : original->second);
    }
  }

  void add_output(const Pt2Output& spec, const Pt2Argument& argument) {
    const auto* tensor = std::get_if<Pt2Tensor>(&argument);
    if (tensor == nullptr || spec.kind == Pt2Output::Kind::kUserInputMutation) return;
    const ValueId id = scope_.at(tensor->name);
    if (spec.kind == Pt2Output::Kind::kUserOutput) {
      const bool is_new = std::find(graph_.outputs.begin(), graph_.outputs.end(), id) == graph_.outputs.end();
      if (is_new && graph_.values[id].kind == ValueKind::kResult) graph_.outputs.push_back(id);
      return;
    }
    const auto buffer = std::find_if(graph_.buffers.begin(), graph_.buffers.end(),
                                     [&](const Buffer& candidate) { return candidate.name == spec.state_name; });
    if (buffer == graph_.buffers.end()) {
      throw GraphError(fmt::format("an output changes the buffer '{}', which there is not", spec.state_name));
    }
    const ValueId result = add_value({ValueKind::kResult, spec.state_name + "_written", at::kFloat, {}});
    graph_.nodes.push_back({"aten::copy_",
                            "",
                            {Argument::of(buffer->value), Argument::of(id), Argument::fixed(false)},
                            {result},
                            spec.state_name});
  }

  const Pt2Program& program_;
  Graph graph_;
  Pt2State state_;
  Pt2Scope scope_;
  bool is_detached_ = false;
};

}  // namespace

Graph translate_pt2(const Pt2Program& program, const std::vector<Pt2Weight>& weights,
                    const std::vector<Pt2Weight>& constants) {
  return Translator(program, weights, constants).run();
}

}  // namespace tutti::graph
