// Arguments kind by kind.
#include "src/graph/pt2_arguments.h"

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <algorithm>

namespace tutti::graph {
namespace {

c10::TypeKind element_kind(const c10::Argument& declared) {
  c10::TypePtr type = declared.type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
  return type->kind();
}

/// A list of constants in the form that the schema asks for.
c10::IValue constant_list(const std::vector<Pt2Number>& numbers, c10::TypeKind kind) {
  const auto as = [&]<typename T>(T) {
    std::vector<T> list;
    for (const Pt2Number& number : numbers) {
      list.push_back(std::visit(
          [](const auto& value) -> T {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Pt2Symbol>) {
              return 0;
            } else {
              return static_cast<T>(value);
            }
          },
          number));
    }
    return list;
  };
  const bool has_reals = std::any_of(numbers.begin(), numbers.end(),
                                     [](const Pt2Number& number) { return std::holds_alternative<double>(number); });
  if (kind == c10::TypeKind::FloatType || has_reals) return as(double{});
  if (kind == c10::TypeKind::BoolType) {
    c10::List<bool> list;
    for (const int64_t number : as(int64_t{})) list.push_back(number != 0);
    return list;
  }
  return as(int64_t{});
}

/// Makes an Argument of each kind of Pt2Argument.
class ArgumentReader {
 public:
  ArgumentReader(const Pt2Scope& scope, c10::TypeKind kind) : scope_(scope), kind_(kind) {}

  Argument operator()(std::monostate) const { return Argument::none(); }
  Argument operator()(const Pt2Tensor& tensor) const { return Argument::of(scope_.at(tensor.name)); }
  Argument operator()(const Pt2Tensors& tensors) const {
    std::vector<ValueId> ids;
    for (const auto& name : tensors.names) ids.push_back(name ? scope_.at(*name) : kNoValue);
    return Argument::list(std::move(ids));
  }
  Argument operator()(const Pt2Number& number) const {
    return std::visit(
        [this](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Pt2Symbol>) {
            return Argument::of(scope_.at(value.name));
          } else {
            return Argument::fixed(value);
          }
        },
        number);
  }
  Argument operator()(const Pt2Numbers& list) const {
    if (list.numbers.empty() && kind_ == c10::TypeKind::TensorType) return Argument::list({});
    std::vector<ValueId> ids;
    for (const Pt2Number& number : list.numbers) {
      const auto* symbol = std::get_if<Pt2Symbol>(&number);
      ids.push_back(symbol == nullptr ? kNoValue : scope_.at(symbol->name));
    }
    c10::IValue constants = constant_list(list.numbers, kind_);
    const bool is_fixed = std::all_of(ids.begin(), ids.end(), [](ValueId id) { return id == kNoValue; });
    return is_fixed ? Argument::fixed(std::move(constants)) : Argument::mixed(std::move(ids), std::move(constants));
  }
  Argument operator()(const std::string& text) const { return Argument::fixed(text); }
  Argument operator()(at::ScalarType type) const { return Argument::fixed(static_cast<int64_t>(type)); }
  Argument operator()(at::MemoryFormat format) const { return Argument::fixed(static_cast<int64_t>(format)); }
  Argument operator()(at::Layout layout) const { return Argument::fixed(static_cast<int64_t>(layout)); }
  Argument operator()(const Pt2Device&) const { return Argument::fixed(c10::Device(c10::DeviceType::CPU)); }
  Argument operator()(const std::shared_ptr<const Pt2Graph>&) const {
    throw GraphError("expected a value, found a subgraph");
  }

 private:
  const Pt2Scope& scope_;
  c10::TypeKind kind_;
};

const Pt2NamedArgument* find_argument(const Pt2Node& node, const std::string& name) {
  const auto found = std::find_if(node.inputs.begin(), node.inputs.end(),
                                  [&](const Pt2NamedArgument& input) { return input.name == name; });
  return found == node.inputs.end() ? nullptr : &*found;
}

}  // namespace

void Pt2Scope::bind(const std::string& name, ValueId id) {
  if (!ids_.emplace(name, id).second) throw GraphError(fmt::format("the value '{}' is made twice", name));
}

ValueId Pt2Scope::at(const std::string& name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) throw GraphError(fmt::format("the value '{}' is read before any node makes it", name));
  return found->second;
}

std::vector<Argument> arguments_of(const Pt2Node& node, const c10::FunctionSchema& schema, const Pt2Scope& scope) {
  std::vector<Argument> arguments;
  size_t used = 0;
  for (const c10::Argument& declared : schema.arguments()) {
    const Pt2NamedArgument* given = find_argument(node, declared.name());
    if (given != nullptr) {
      arguments.push_back(std::visit(ArgumentReader(scope, element_kind(declared)), given->argument));
      ++used;
    } else if (declared.default_value()) {
      arguments.push_back(Argument::fixed(*declared.default_value()));
    } else {
      throw GraphError(fmt::format("the argument '{}' of the operator is missing", declared.name()));
    }
  }
  if (used != node.inputs.size()) {
    throw GraphError(fmt::format("{} of its {} arguments are not in the operator's schema, or stand there twice",
                                 node.inputs.size() - used, node.inputs.size()));
  }
  return arguments;
}

std::vector<Argument> numbers_of(const Pt2Node& node, const Pt2Scope& scope) {
  std::vector<Argument> arguments;
  for (const Pt2NamedArgument& input : node.inputs) {
    arguments.push_back(std::visit(ArgumentReader(scope, c10::TypeKind::NumberType), input.argument));
  }
  return arguments;
}

}  // namespace tutti::graph
