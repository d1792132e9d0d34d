// The keys of one layer, checked against its declaration.
#include "src/graph/layer_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/graph/nearest_name.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

/// Sizes beyond this are slips of the pen, and products of them would overflow.
constexpr int64_t kMaxInteger = std::numeric_limits<int32_t>::max();

template <int64_t least>
bool is_integer(const Json& value) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kMaxInteger}) return false;
  return value.get<int64_t>() >= least && value.get<int64_t>() <= kMaxInteger;
}

template <bool (*accepts)(const Json&)>
bool is_list_of(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, accepts);
}

template <int64_t least>
bool is_integer_or_list(const Json& value) {
  return is_integer<least>(value) || is_list_of<is_integer<least>>(value);
}

/// True where a whole number, or one of a list, is beyond what every type takes.
bool holds_too_large(const Json& value) {
  if (value.is_array()) return std::ranges::any_of(value, holds_too_large);
  return value.is_number_integer() && value.get<double>() > static_cast<double>(kMaxInteger);
}

bool is_list(const Json& value) { return value.is_array(); }
bool is_number(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

struct OptionType {
  std::string_view name;
  bool (*accepts)(const Json& value);
};

constexpr OptionType kTypes[] = {
    {"int", is_integer<-kMaxInteger>},
    {"int >= 0", is_integer<0>},
    {"int >= 1", is_integer<1>},
    {"int >= 0 or none", [](const Json& value) { return is_integer<0>(value) || value == "none"; }},
    {"int or list of ints, >= 0", is_integer_or_list<0>},
    {"int or list of ints, >= 1", is_integer_or_list<1>},
    {"int or list of ints, >= 0, or same",
     [](const Json& value) { return is_integer_or_list<0>(value) || value == "same"; }},
    {"int or list of ints, >= 1, or kernel",
     [](const Json& value) { return is_integer_or_list<1>(value) || value == "kernel"; }},
    {"list of ints", is_list_of<is_integer<-kMaxInteger>>},
    {"list of ints, >= 1", is_list_of<is_integer<1>>},
    {"float", is_number},
    {"float > 0", [](const Json& value) { return is_number(value) && value.get<double>() > 0; }},
    {"float in [0, 1]",
     [](const Json& value) { return is_number(value) && value.get<double>() >= 0 && value.get<double>() <= 1; }},
    {"float in [0, 1)",
     [](const Json& value) { return is_number(value) && value.get<double>() >= 0 && value.get<double>() < 1; }},
    {"bool", [](const Json& value) { return value.is_boolean(); }},
    {"none or tanh", [](const Json& value) { return value == "none" || value == "tanh"; }},
    {"concat or add", [](const Json& value) { return value == "concat" || value == "add"; }},
    {"name of an activation", [](const Json& value) { return value.is_string(); }},
    {"list of layers", is_list},
    {"list of lists of layers", is_list_of<is_list>},
};

const OptionType& type_named(const std::string& name) {
  const auto* found = std::ranges::find(kTypes, name, &OptionType::name);
  if (found == std::end(kTypes)) throw std::logic_error("a layer key has the unknown type '" + name + "'");
  return *found;
}

/// A default as written in a job file: JSON where it is JSON ("1", "true", "[]"), otherwise a word ("same").
Json parse_default(const std::string& text) { return Json::accept(text) ? Json::parse(text) : Json(text); }

std::vector<std::string> key_names(const LayerDeclaration& declaration) {
  std::vector<std::string> names;
  for (const LayerKey& key : declaration.keys) names.push_back(key.name);
  return names;
}

}  // namespace

std::vector<std::string> option_types() {
  std::vector<std::string> names;
  for (const OptionType& type : kTypes) names.emplace_back(type.name);
  return names;
}

LayerOptions::LayerOptions(const LayerDeclaration& declaration, const Json& value) : values_(Json::object()) {
  if (value.is_object()) {
    read_map(declaration, value);
  } else if (!value.is_null()) {
    if (declaration.shorthand.empty()) {
      const std::string keys = declaration.keys.empty()
                                   ? "nothing behind its name (it has no keys)"
                                   : fmt::format("a map of keys ({})", fmt::join(key_names(declaration), ", "));
      throw OptionError(fmt::format("expected {}, found {}", keys, value.dump()));
    }
    shorthand_ = true;
    set(*std::ranges::find(declaration.keys, declaration.shorthand, &LayerKey::name), value);
  }
  for (const LayerKey& key : declaration.keys) {
    if (values_.contains(key.name)) continue;
    if (key.default_value.empty()) {
      throw OptionError(fmt::format("the key `{}` is missing: expected {} ({})", key.name, key.type, key.meaning));
    }
    set(key, parse_default(key.default_value));
  }
}

void LayerOptions::read_map(const LayerDeclaration& declaration, const Json& map) {
  for (const auto& [name, value] : map.items()) {
    const auto key = std::ranges::find(declaration.keys, name, &LayerKey::name);
    if (key != declaration.keys.end()) {
      set(*key, value);
      continue;
    }
    if (declaration.keys.empty()) throw OptionError(fmt::format("unknown key `{}`: this layer has no keys", name));
    const std::vector<std::string> known = key_names(declaration);
    throw OptionError(fmt::format("unknown key `{}`; the nearest is `{}` (all: {})", name, nearest_name(name, known),
                                  fmt::join(known, ", ")));
  }
}

void LayerOptions::set(const LayerKey& key, const Json& value) {
  if (!type_named(key.type).accepts(value)) {
    const std::string bound = holds_too_large(value) ? fmt::format(", <= {}", kMaxInteger) : "";
    throw OptionError(fmt::format("the key `{}`: expected {}{}, found {}", key.name, key.type, bound, value.dump()));
  }
  values_[key.name] = value;
}

const Json& LayerOptions::json(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw std::logic_error("a layer reads the key '" + key + "', which it does not declare");
  return *found;
}

std::vector<int64_t> LayerOptions::integers(const std::string& key, int64_t count) const {
  const Json& value = json(key);
  if (value.is_number()) return std::vector<int64_t>(static_cast<size_t>(count), value.get<int64_t>());
  if (std::ssize(value) != count) {
    const std::string list = count == 1 ? "a list of 1" : fmt::format("a list of {}", count);
    throw OptionError(fmt::format("the key `{}`: expected one number or {}, found {}", key, list, value.dump()));
  }
  return value.get<std::vector<int64_t>>();
}

}  // namespace tutti::graph
