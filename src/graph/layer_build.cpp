// One layer being built: what every layer family works with.
#include "src/graph/layer_build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "src/graph/nearest_name.h"

namespace tutti::graph {
namespace {

/// Tensors beyond this many elements are slips of the pen; smaller ones cannot overflow a byte count.
constexpr double kMaxElements = 0x1p50;

/// A list's element: its layer's name, and what stands behind it.
std::pair<std::string, nlohmann::json> name_and_value(const ListScope& scope, const nlohmann::json& layer) {
  if (layer.is_string()) return {layer.get<std::string>(), nullptr};
  if (layer.is_object() && layer.size() == 1) return {layer.begin().key(), layer.begin().value()};
  const std::string advice =
      layer.is_object() && layer.size() > 1 ? "; write the layer's keys one level deeper than its name" : "";
  throw LayerError(scope.path, fmt::format("layers.{}: expected a layer (a name, or a map of one name to its keys), "
                                           "found {}{}",
                                           scope.path, layer.dump(), advice));
}

const LayerEntry& entry_named(const ListScope& scope, const std::string& name) {
  const LayerEntry* entry = find_layer(name);
  if (entry != nullptr) return *entry;
  std::vector<std::string> known;
  for (const LayerEntry& other : layer_entries()) known.push_back(other.declaration.name);
  throw LayerError(scope.path, fmt::format("layers.{}: expected the name of a layer, found `{}`; the nearest is `{}`",
                                           scope.path, name, nearest_name(name, known)));
}

std::string label_of(const ListScope& scope, const std::string& name) {
  return fmt::format("layers.{} {}{}{}", scope.path, scope.within, scope.within.empty() ? "" : " ", name);
}

}  // namespace

PythonModule& PythonModule::keyword(const std::string& name, const std::string& value,
                                    const std::string& default_value) {
  if (value != default_value) arguments.push_back(name + "=" + value);
  return *this;
}

std::string PythonModule::text() const { return fmt::format("{}({})", type, fmt::join(arguments, ", ")); }

std::string python_text(bool value) { return value ? "True" : "False"; }
std::string python_text(double value) { return fmt::format("{}", value); }
std::string python_text(const std::vector<int64_t>& values) {
  const bool equal = std::ranges::all_of(values, [&](int64_t value) { return value == values.front(); });
  return equal ? fmt::format("{}", values.front()) : fmt::format("({})", fmt::join(values, ", "));
}

ListScope ListScope::member(const std::string& step, const std::string& module) const {
  ListScope inner = *this;
  std::string& steps = within.empty() ? inner.path : inner.within;
  steps += (steps.empty() ? "" : ".") + step;
  inner.prefix += module + ".";
  return inner;
}

LayerBuild::LayerBuild(ListScope scope, const LayerDeclaration& declaration, LayerOptions options, ValueId input)
    : scope_(std::move(scope)), declaration_(&declaration), options_(std::move(options)), input_(input) {}

ListScope LayerBuild::member(const std::string& key) const {
  return scope_.member(options_.is_shorthand() ? name() : name() + "." + key, key);
}

std::vector<int64_t> LayerBuild::any_shape() const { return sample_shape(scope_.graph->value(input_)); }

void LayerBuild::expect_float() const {
  if (scope_.graph->value(input_).type == at::kFloat) return;
  fail(fmt::format("expected floating-point numbers, found indices {}; put `embedding` before it", found(input_)));
}

std::vector<int64_t> LayerBuild::shape(int64_t rank, const std::string& words, const std::string& advice) const {
  expect_float();
  std::vector<int64_t> shape = any_shape();
  if (std::ssize(shape) != rank) {
    fail(fmt::format("expected an input of {} dimension{} per sample ({}), found {}; {}", rank, rank == 1 ? "" : "s",
                     words, found(input_),
                     advice.empty() ? "put `reshape` before it, or leave out what removed dimensions" : advice));
  }
  return shape;
}

void LayerBuild::expect_size(const std::vector<int64_t>& shape) const {
  double elements = 1;
  for (int64_t size : shape) elements *= static_cast<double>(size);
  if (elements > kMaxElements) {
    fail(fmt::format("expected tensors of fewer than 2^50 elements, found one of shape {}", text_of(shape)));
  }
}

ValueId LayerBuild::parameter(const std::string& name, std::vector<int64_t> shape,
                              const Initialisation& initialisation) {
  expect_size(shape);
  return graph().add_parameter(scope_.prefix + name, std::move(shape), initialisation);
}

ValueId LayerBuild::buffer(const std::string& name, at::Tensor initial) {
  return graph().add_buffer(scope_.prefix + name, std::move(initial));
}

ValueId LayerBuild::call(std::string_view operator_name, std::vector<Argument> arguments,
                         const std::vector<int64_t>& shape, at::ScalarType type) {
  expect_size(shape);
  return graph().add_node({operator_name, std::move(arguments), batched(shape), type}, label());
}

ValueId LayerBuild::call_like_input(std::string_view operator_name, std::vector<Argument> arguments) {
  expect_float();
  return call(operator_name, std::move(arguments), any_shape());
}

std::string LayerBuild::label() const { return label_of(scope_, name()); }

std::string LayerBuild::found(ValueId value) const {
  return fmt::format("{} from {}", text_of(sample_shape(scope_.graph->value(value))), scope_.graph->origin(value));
}

void LayerBuild::fail(const std::string& message) const { throw LayerError(scope_.path, label() + ": " + message); }

BuiltLayer build_layer(const ListScope& scope, const nlohmann::json& layer, ValueId input) {
  const auto [name, value] = name_and_value(scope, layer);
  const LayerEntry& entry = entry_named(scope, name);
  try {
    LayerBuild build(scope, entry.declaration, LayerOptions(entry.declaration, value), input);
    return entry.build(build);
  } catch (const OptionError& error) {
    throw LayerError(scope.path, label_of(scope, name) + ": " + error.what());
  }
}

BuiltLayer build_sequence(const ListScope& scope, const nlohmann::json& layers, ValueId input) {
  BuiltLayer sequence{input, {"nn.Sequential", {}}};
  for (size_t i = 0; i < layers.size(); ++i) {
    BuiltLayer layer = build_layer(scope.member(std::to_string(i)), layers[i], sequence.output);
    sequence.output = layer.output;
    sequence.module.arguments.push_back(layer.module.text());
  }
  return sequence;
}

int64_t element_count(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string text_of(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace tutti::graph
