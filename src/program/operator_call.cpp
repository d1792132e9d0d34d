// Boxed calls: arguments to a stack of IValues, results back to values.
#include "src/program/operator_call.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <fmt/format.h>

#include "src/program/node_context.h"

namespace tutti::program {
namespace {

using graph::Argument;
using graph::GraphError;
using graph::kNoValue;

c10::OperatorHandle find_operator(const graph::Node& node) {
  const auto found = c10::Dispatcher::singleton().findSchema({node.target, node.overload});
  if (!found) {
    throw GraphError(
        fmt::format("{}: this LibTorch has no operator of that name. Replace the layer.", described(node)));
  }
  return *found;
}

/// The tensors of a list argument, in the form that the schema asks for (Tensor[] or Tensor?[]).
c10::IValue tensor_list(const Argument& argument, std::span<at::Tensor> values, const c10::TypePtr& type) {
  if (type->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> list;
    for (const graph::ValueId id : argument.ids) {
      list.push_back(id == kNoValue ? std::optional<at::Tensor>() : std::optional<at::Tensor>(values[id]));
    }
    return list;
  }
  c10::List<at::Tensor> list;
  for (const graph::ValueId id : argument.ids) list.push_back(values[id]);
  return list;
}

void store(const c10::IValue& result, std::span<const graph::ValueId> outputs, std::span<at::Tensor> values) {
  if (result.isTensorList()) {
    size_t position = 0;
    for (const at::Tensor& element : result.toTensorVector()) {
      if (position < outputs.size() && outputs[position] != kNoValue) values[outputs[position]] = element;
      ++position;
    }
  } else if (!outputs.empty() && outputs.front() != kNoValue && result.isTensor()) {
    values[outputs.front()] = result.toTensor();
  }
}

}  // namespace

OperatorCall::OperatorCall(const graph::Node& node) : node_(node), operator_(find_operator(node)) {
  check_arguments();
  for (size_t i = 0; i < node_.arguments.size(); ++i) normalise_constant(i);
  find_training_flag();
  find_mutated_values();
  is_random_ = draws_random_numbers();
}

void OperatorCall::check_arguments() const {
  const size_t expected = operator_.schema().arguments().size();
  if (node_.arguments.size() != expected) {
    throw GraphError(
        fmt::format("{}: the operator takes {} arguments, the graph gives {}. Write every argument of the "
                    "schema, defaults too.",
                    described(node_), expected, node_.arguments.size()));
  }
}

/// Boxed calls convert nothing: a number for a float, a list or a tensor must be given in the schema's own form.
void OperatorCall::normalise_constant(size_t position) {
  Argument& argument = node_.arguments[position];
  if (argument.kind != Argument::Kind::kConstant) return;
  const c10::Argument& declared = operator_.schema().arguments()[position];
  c10::TypePtr type = declared.type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  c10::IValue& constant = argument.constant;
  if (type->kind() == c10::TypeKind::FloatType && constant.isInt()) {
    constant = static_cast<double>(constant.toInt());
  } else if (type->kind() == c10::TypeKind::ListType && constant.isInt()) {
    constant = std::vector<int64_t>(declared.N().value_or(1), constant.toInt());
  } else if (type->kind() == c10::TypeKind::TensorType && constant.isScalar()) {
    at::Tensor wrapped = c10::scalar_to_tensor(constant.toScalar());
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);  // a number does not widen the other operand's type
    constant = std::move(wrapped);
  }
}

void OperatorCall::find_training_flag() {
  const auto& declared = operator_.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const bool is_flag = name == "training" || name == "train" || name == "use_input_stats";
    if (is_flag && node_.arguments[i].constant.isBool() && node_.arguments[i].constant.toBool()) training_flag_ = i;
  }
  const std::optional<int> statistics = operator_.schema().argumentIndexWithName("running_mean");
  if (statistics && node_.arguments[*statistics].kind == Argument::Kind::kConstant) training_flag_.reset();
}

void OperatorCall::find_mutated_values() {
  const auto& declared = operator_.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const c10::AliasInfo* alias = declared[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    const std::vector<graph::ValueId>& ids = node_.arguments[i].ids;
    mutated_values_.insert(mutated_values_.end(), ids.begin(), ids.end());
  }
}

bool OperatorCall::draws_random_numbers() const {
  if (!operator_.hasTag(at::Tag::nondeterministic_seeded)) return false;
  const auto& declared = operator_.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const c10::IValue& constant = node_.arguments[i].constant;
    const bool is_off = (name == "train" || name == "training") && constant.isBool() && !constant.toBool();
    const bool is_rate = name == "p" || name == "dropout_p" || name == "dropout";
    if (is_off || (is_rate && constant.isDouble() && constant.toDouble() == 0)) return false;
  }
  return true;
}

void OperatorCall::operator()(std::span<at::Tensor> values, bool training) const {
  torch::jit::Stack stack;
  stack.reserve(node_.arguments.size());
  for (size_t i = 0; i < node_.arguments.size(); ++i) {
    const Argument& argument = node_.arguments[i];
    if (argument.kind == Argument::Kind::kValues) {
      stack.push_back(tensor_list(argument, values, operator_.schema().arguments()[i].type()));
    } else if (argument.kind == Argument::Kind::kConstant) {
      stack.push_back(training_flag_ == i && !training ? c10::IValue(false) : argument.constant);
    } else if (argument.ids.front() == kNoValue) {
      stack.emplace_back();
    } else {
      stack.emplace_back(values[argument.ids.front()]);
    }
  }
  operator_.callBoxed(stack);
  if (stack.size() == 1) {
    store(stack.front(), node_.outputs, values);
    return;
  }
  for (size_t i = 0; i < stack.size() && i < node_.outputs.size(); ++i) {
    store(stack[i], std::span(node_.outputs).subspan(i, 1), values);
  }
}

}  // namespace tutti::program
