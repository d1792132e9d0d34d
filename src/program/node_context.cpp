// Typed access to a node's arguments.
#include "src/program/node_context.h"

#include <fmt/format.h>

namespace tutti::program {

using graph::Argument;

NodeContext::NodeContext(ProgramContext& program, int64_t node_index,
                         const std::vector<std::vector<GradientTarget>>& targets)
    : program_(program), node_(program.graph.nodes[node_index]), index_(node_index), targets_(targets) {}

at::ScalarType NodeContext::type(graph::ValueId id) const {
  const at::ScalarType type = graph().values[id].type;
  if (type == at::kComplexFloat) return c10::toComplexType(precision());
  return type == at::kFloat ? precision() : type;
}

void NodeContext::fail(size_t argument, const char* expected) const {
  throw graph::GraphError(
      fmt::format("{}: argument {} should be {}. Check what built the graph.", described(node_), argument, expected));
}

graph::ValueId NodeContext::value(size_t argument) const {
  const Argument& found = node_.arguments.at(argument);
  if (found.kind == Argument::Kind::kValue) return found.ids.front();
  if (found.kind == Argument::Kind::kConstant && found.constant.isNone()) return graph::kNoValue;
  fail(argument, "a tensor");
}

std::vector<graph::ValueId> NodeContext::values(size_t argument) const {
  const Argument& found = node_.arguments.at(argument);
  if (found.kind != Argument::Kind::kValues) fail(argument, "a list of tensors");
  return found.ids;
}

GradientTarget NodeContext::target(size_t argument) const {
  const std::vector<GradientTarget>& found = targets_.at(argument);
  return found.empty() ? GradientTarget{} : found.front();
}

const c10::IValue& NodeContext::constant(size_t argument) const {
  const Argument& found = node_.arguments.at(argument);
  if (found.kind != Argument::Kind::kConstant) fail(argument, "a constant");
  return found.constant;
}

int64_t NodeContext::integer(size_t argument) const {
  const c10::IValue& found = constant(argument);
  if (!found.isInt()) fail(argument, "an integer");
  return found.toInt();
}

double NodeContext::number(size_t argument) const {
  const c10::IValue& found = constant(argument);
  if (found.isInt()) return static_cast<double>(found.toInt());
  if (!found.isDouble()) fail(argument, "a number");
  return found.toDouble();
}

bool NodeContext::flag(size_t argument) const {
  const c10::IValue& found = constant(argument);
  if (!found.isBool()) fail(argument, "true or false");
  return found.toBool();
}

std::string NodeContext::text(size_t argument) const {
  const c10::IValue& found = constant(argument);
  if (!found.isString()) fail(argument, "text");
  return found.toStringRef();
}

std::vector<int64_t> NodeContext::integers(size_t argument) const {
  const c10::IValue& found = constant(argument);
  if (found.isInt()) return {found.toInt()};
  if (!found.isIntList()) fail(argument, "a list of integers");
  return found.toIntVector();
}

std::vector<int64_t> NodeContext::integers(size_t argument, size_t length) const {
  std::vector<int64_t> found = integers(argument);
  if (found.size() == 1) found.resize(length, found.front());
  if (found.size() != length) fail(argument, fmt::format("a list of {} integers", length).c_str());
  return found;
}

int64_t element_count(const graph::Value& value, int64_t rows) {
  int64_t count = 1;
  for (const int64_t size : value.shape) count *= graph::size_at(size, rows);
  return count;
}

int64_t value_bytes(const graph::Value& value, int64_t rows, int64_t float_bytes) {
  const int64_t element = value.type == at::kFloat ? float_bytes : static_cast<int64_t>(c10::elementSize(value.type));
  return block_bytes(element_count(value, rows) * element);
}

}  // namespace tutti::program
