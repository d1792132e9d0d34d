// Boxed calls: arguments to a stack of IValues, results back to values.
#include "src/graph/operator_call.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <fmt/format.h>

#include <stdexcept>

namespace tutti::graph {
namespace {

/// The type that an argument holds where it is not none.
c10::TypePtr plain_type(const c10::Argument& declared) {
  const c10::TypePtr& type = declared.type();
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

bool is_scalar_type(const c10::Argument& declared) {
  c10::TypePtr type = declared.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

/// The tensors of a list argument, in the form that the schema asks for (Tensor[] or Tensor?[]).
c10::IValue tensor_list(const Argument& argument, std::span<at::Tensor> values, const c10::TypePtr& type) {
  if (type->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> list;
    for (const ValueId id : argument.ids) {
      list.push_back(id == kNoValue ? std::optional<at::Tensor>() : std::optional<at::Tensor>(values[id]));
    }
    return list;
  }
  c10::List<at::Tensor> list;
  for (const ValueId id : argument.ids) list.push_back(values[id]);
  return list;
}

at::Scalar number_in(const c10::IValue& value) {
  return value.isSymInt() ? at::Scalar(value.toSymInt().expect_int()) : value.toScalar();
}

/// A number where the schema says int, float, bool or Scalar.
c10::IValue as_number(const at::Tensor& value, c10::TypeKind kind) {
  const at::Scalar number = value.item();
  if (kind == c10::TypeKind::IntType) return number.toLong();
  if (kind == c10::TypeKind::FloatType) return number.toDouble();
  if (kind == c10::TypeKind::BoolType) return number.toBool();
  return number;
}

/// A list of numbers, those of which that are values filled in.
c10::IValue number_list(const Argument& argument, std::span<at::Tensor> values, const c10::TypePtr& type) {
  const c10::TypePtr& element = type->expectRef<c10::ListType>().getElementType();
  c10::impl::GenericList list(element);
  for (size_t i = 0; i < argument.ids.size(); ++i) {
    const ValueId id = argument.ids[i];
    list.push_back(id == kNoValue ? argument.constant.toListRef()[i] : as_number(values[id], element->kind()));
  }
  return list;
}

c10::FunctionSchema schema_of(const NumberFunction& function) {
  std::vector<c10::Argument> arguments;
  for (int64_t i = 0; i < function.argument_count; ++i) {
    arguments.emplace_back(std::string(1, static_cast<char>('a' + i)), c10::NumberType::get());
  }
  return {std::string(function.target), "", std::move(arguments), {c10::Argument("", c10::NumberType::get())}};
}

}  // namespace

at::Tensor number_tensor(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::OperatorHandle find_operator(const Node& node) {
  const auto found = c10::Dispatcher::singleton().findSchema({node.target, node.overload});
  if (!found) {
    throw GraphError(
        fmt::format("{}: this LibTorch has no operator of that name. Replace the layer.", described(node)));
  }
  return *found;
}

OperatorCall::OperatorCall(const Node& node, at::ScalarType precision)
    : node_(node), precision_(precision), function_(NumberFunction::find(node.target)) {
  if (function_ != nullptr) {
    number_schema_ = schema_of(*function_);
  } else {
    operator_ = find_operator(node_);
  }
  check_arguments();
  for (size_t i = 0; i < node_.arguments.size(); ++i) normalise_constant(i);
  find_training_flag();
  find_mutated_values();
  is_random_ = draws_random_numbers();
}

void OperatorCall::check_arguments() const {
  const size_t expected = schema().arguments().size();
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
  const c10::Argument& declared = schema().arguments()[position];
  const c10::TypePtr type = plain_type(declared);
  c10::IValue& constant = argument.constant;
  if (is_scalar_type(declared) && constant.isInt() && constant.toInt() == static_cast<int64_t>(at::kFloat)) {
    constant = static_cast<int64_t>(precision_);
  } else if (type->kind() == c10::TypeKind::FloatType && constant.isInt()) {
    constant = static_cast<double>(constant.toInt());
  } else if (type->kind() == c10::TypeKind::ListType && constant.isInt()) {
    constant = std::vector<int64_t>(declared.N().value_or(1), constant.toInt());
  } else if (type->kind() == c10::TypeKind::TensorType && constant.isScalar()) {
    constant = number_tensor(constant.toScalar());
  }
}

void OperatorCall::find_training_flag() {
  const auto& declared = schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const bool is_flag = name == "training" || name == "train" || name == "use_input_stats";
    if (is_flag && node_.arguments[i].constant.isBool() && node_.arguments[i].constant.toBool()) training_flag_ = i;
  }
  const std::optional<int> statistics = schema().argumentIndexWithName("running_mean");
  if (statistics && node_.arguments[*statistics].kind == Argument::Kind::kConstant) training_flag_.reset();
}

void OperatorCall::find_mutated_values() {
  const auto& declared = schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const c10::AliasInfo* alias = declared[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    const std::vector<ValueId>& ids = node_.arguments[i].ids;
    mutated_values_.insert(mutated_values_.end(), ids.begin(), ids.end());
  }
}

bool OperatorCall::draws_random_numbers() const {
  if (!operator_ || !operator_->hasTag(at::Tag::nondeterministic_seeded)) return false;
  const auto& declared = schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const c10::IValue& constant = node_.arguments[i].constant;
    const bool is_off = (name == "train" || name == "training") && constant.isBool() && !constant.toBool();
    const bool is_rate = name == "p" || name == "dropout_p" || name == "dropout";
    if (is_off || (is_rate && constant.isDouble() && constant.toDouble() == 0)) return false;
  }
  return true;
}

c10::IValue OperatorCall::argument_value(size_t position, std::span<at::Tensor> values, bool training) const {
  const Argument& argument = node_.arguments[position];
  const c10::Argument& declared = schema().arguments()[position];
  switch (argument.kind) {
    case Argument::Kind::kValues:
      return tensor_list(argument, values, plain_type(declared));
    case Argument::Kind::kNumbers:
      return number_list(argument, values, plain_type(declared));
    case Argument::Kind::kConstant:
      return training_flag_ == position && !training ? c10::IValue(false) : argument.constant;
    case Argument::Kind::kValue:
      break;
  }
  if (argument.ids.front() == kNoValue) return {};
  const at::Tensor& value = values[argument.ids.front()];
  const c10::TypeKind kind = plain_type(declared)->kind();
  return kind == c10::TypeKind::TensorType ? c10::IValue(value) : as_number(value, kind);
}

void OperatorCall::store(const c10::IValue& result, std::span<const ValueId> outputs,
                         std::span<at::Tensor> values) const {
  const auto put = [&](size_t position, at::Tensor tensor) {
    if (position >= outputs.size() || outputs[position] == kNoValue) return;
    // LibTorch makes float32 where no operand says otherwise, in a program of doubles too.
    const bool is_narrow = precision_ == at::kDouble && tensor.defined() && tensor.scalar_type() == at::kFloat;
    values[outputs[position]] = is_narrow ? tensor.to(at::kDouble) : std::move(tensor);
  };
  if (result.isTensorList()) {
    size_t position = 0;
    for (const at::Tensor& element : result.toTensorVector()) put(position++, element);
  } else if (result.isTensor()) {
    put(0, result.toTensor());
  } else if (!result.isNone()) {
    put(0, number_tensor(number_in(result)));
  }
}

void OperatorCall::operator()(std::span<at::Tensor> values, bool training) const {
  torch::jit::Stack stack;
  stack.reserve(node_.arguments.size());
  for (size_t i = 0; i < node_.arguments.size(); ++i) stack.push_back(argument_value(i, values, training));
  if (function_ != nullptr) {
    try {
      stack = {function_->compute(stack)};
    } catch (const std::domain_error& error) {
      throw std::runtime_error(fmt::format("{}: {}", described(node_), error.what()));
    }
  } else {
    operator_->callBoxed(stack);
  }
  if (stack.size() == 1) {
    store(stack.front(), node_.outputs, values);
    return;
  }
  for (size_t i = 0; i < stack.size() && i < node_.outputs.size(); ++i) {
    store(stack[i], std::span(node_.outputs).subspan(i, 1), values);
  }
}

}  // namespace tutti::graph
