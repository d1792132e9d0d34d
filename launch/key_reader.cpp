// Reads a mapping of the job file through the declarations of its keys.
#include "launch/key_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "launch/job_document.h"

namespace tutti::launch {
namespace {

/// A declared default as a node.
Node default_node(const Key& key) {
  if (!key.default_value.starts_with('[')) return Node::scalar(key.default_value, {});
  Faults faults("the default of " + key.name, {});
  Node node = parse_document(key.default_value, faults);
  faults.throw_if_any();
  return node;
}

bool has_default(const Key& key) { return key.default_value != kRequired && key.default_value != kNone; }

bool in_bounds(const Key& key, int64_t value) { return key.type.bounds.contains(static_cast<double>(value)); }
bool in_bounds(const Key& key, double value) { return key.type.bounds.contains(value); }
bool in_bounds(const Key&, bool) { return true; }
bool in_bounds(const Key& key, const std::string& value) {
  return key.type.kind != ValueType::Kind::kChoice ||
         std::ranges::find(key.type.choices, value) != key.type.choices.end();
}

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace

KeyReader::KeyReader(const Block& block, const Node& node, std::string path, Faults& faults)
    : block_(block), node_(node), path_(std::move(path)), faults_(faults) {
  check_keys();
}

void KeyReader::check_keys() const {
  if (node_.kind != Node::Kind::kMap && node_.kind != Node::Kind::kNull) {
    faults_.add(node_.place, path_, fmt::format("expected a mapping, found {}", describe(node_)));
    return;
  }
  for (const Node& child : node_.children) {
    if (declares(child.key)) continue;
    const std::vector<std::string> known = block_.key_names();
    const std::string expected = known.empty() ? block_.name + " takes no keys" : expected_one_of(child.key, known);
    faults_.add(child.key_place, path_, fmt::format("unknown key `{}`; {}", child.key, expected));
  }
  for (const Key& key : block_.keys) {
    if (key.default_value != kRequired || has(key.name)) continue;
    faults_.add(node_.place, path_, fmt::format("missing key `{}`: expected {}", key.name, key.type.text()));
  }
}

const Node* KeyReader::node(std::string_view key) const {
  const bool null_is_absent = !has_default(declared(key));
  const Node* child = node_.find(key);
  return child != nullptr && child->kind == Node::Kind::kNull && null_is_absent ? nullptr : child;
}

const Key& KeyReader::declared(std::string_view key) const {
  const Key* found = block_.find(key);
  if (found == nullptr) throw std::logic_error(fmt::format("key {} of {} is not declared", key, block_.name));
  return *found;
}

const Key& KeyReader::declared(std::string_view key, std::initializer_list<ValueType::Kind> kinds) const {
  const Key& found = declared(key);
  if (std::ranges::find(kinds, found.type.kind) == kinds.end()) {
    throw std::logic_error(fmt::format("key {} of {} is read as another type than declared", key, block_.name));
  }
  return found;
}

void KeyReader::wrong_type(const Key& key, const Node& node) const {
  const std::string path = joined(path_, key.name);
  if (key.type.kind == ValueType::Kind::kChoice && node.kind == Node::Kind::kScalar) {
    faults_.add(node.place, path,
                fmt::format("found {}; {}", describe(node), expected_one_of(node.text, key.type.choices)));
    return;
  }
  faults_.add(node.place, path, fmt::format("expected {}, found {}", key.type.text(), describe(node)));
}

template <typename T>
std::optional<T> KeyReader::scalar(const Key& key, std::optional<T> (*parse)(const Node&)) const {
  const auto value_of = [&](const Node& node) -> std::optional<T> {
    if (key.type.or_auto && node.kind == Node::Kind::kScalar && node.text == "auto") return T{};
    const std::optional<T> value = parse(node);
    return value && in_bounds(key, *value) ? value : std::nullopt;
  };
  if (const Node* written = node(key.name)) {
    if (auto value = value_of(*written)) return value;
    wrong_type(key, *written);
  }
  return has_default(key) ? value_of(default_node(key)) : std::nullopt;
}

template <typename T>
std::vector<T> KeyReader::list(const Key& key, std::optional<T> (*parse)(const Node&)) const {
  const Node* written = node(key.name);
  const Node list = written != nullptr ? *written : has_default(key) ? default_node(key) : Node{};
  std::vector<T> values;
  const bool single = key.type.kind == ValueType::Kind::kTexts && list.kind == Node::Kind::kScalar;
  if (written != nullptr && list.kind != Node::Kind::kList && !single) wrong_type(key, list);
  for (const Node& item : single ? std::vector<Node>{list} : list.children) {
    const std::optional<T> value = parse(item);
    if (value && in_bounds(key, *value)) {
      values.push_back(*value);
    } else if (list.kind == Node::Kind::kList) {
      wrong_type(key, item);
    }
  }
  return values;
}

int64_t KeyReader::integer(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kInteger}), integer_of).value_or(0);
}

double KeyReader::number(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kNumber}), number_of).value_or(0);
}

bool KeyReader::boolean(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kBoolean}), boolean_of).value_or(false);
}

int64_t KeyReader::bytes(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kBytes}), bytes_of).value_or(0);
}

std::string KeyReader::text(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kText, ValueType::Kind::kChoice}), text_of).value_or("");
}

std::optional<int64_t> KeyReader::optional_integer(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kInteger}), integer_of);
}

std::optional<double> KeyReader::optional_number(std::string_view key) const {
  return scalar(declared(key, {ValueType::Kind::kNumber}), number_of);
}

std::vector<int64_t> KeyReader::integers(std::string_view key) const {
  return list(declared(key, {ValueType::Kind::kIntegers}), integer_of);
}

std::vector<double> KeyReader::numbers(std::string_view key) const {
  return list(declared(key, {ValueType::Kind::kNumbers}), number_of);
}

std::vector<std::string> KeyReader::texts(std::string_view key) const {
  return list(declared(key, {ValueType::Kind::kTexts}), text_of);
}

nlohmann::json KeyReader::json_value(const Key& key) const {
  using Kind = ValueType::Kind;
  const auto json_of_optional = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  switch (key.type.kind) {
    case Kind::kInteger:
      return json_of_optional(scalar(key, integer_of));
    case Kind::kNumber:
      return json_of_optional(scalar(key, number_of));
    case Kind::kBoolean:
      return json_of_optional(scalar(key, boolean_of));
    case Kind::kBytes:
      return json_of_optional(scalar(key, bytes_of));
    case Kind::kText:
    case Kind::kChoice:
      return json_of_optional(scalar(key, text_of));
    case Kind::kIntegers:
      return list(key, integer_of);
    case Kind::kNumbers:
      return list(key, number_of);
    case Kind::kTexts:
      return list(key, text_of);
    case Kind::kNested:
      break;
  }
  return nullptr;
}

nlohmann::json KeyReader::resolved() const {
  nlohmann::json result = nlohmann::json::object();
  for (const Key& key : block_.keys) {
    if (key.bit_relevant && key.type.kind != ValueType::Kind::kNested) result[key.name] = json_value(key);
  }
  return result;
}

std::string KeyReader::path_of(std::string_view key) const { return joined(path_, key); }

Place KeyReader::place_of(std::string_view key) const {
  const Node* child = node_.find(key);
  return child == nullptr ? node_.place : child->place;
}

void KeyReader::fault(std::string_view key, std::string_view message) const {
  faults_.add(place_of(key), path_of(key), message);
}

std::string KeyReader::fault_text(std::string_view key, std::string_view message) const {
  return faults_.text_of(place_of(key), path_of(key), message);
}

std::optional<Method> read_method(const Node& node, const std::string& path, const std::vector<Block>& blocks,
                                  std::string_view what, Faults& faults) {
  Method method;
  std::string name = node.text;
  Place place = node.place;
  if (node.kind == Node::Kind::kMap && node.children.size() == 1) {
    method.keys = node.children.front();
    name = method.keys.key;
    place = method.keys.key_place;
  } else if (node.kind == Node::Kind::kScalar) {
    method.keys.place = node.place;
  } else {
    const std::string found =
        node.kind == Node::Kind::kMap ? fmt::format("a mapping with {} keys", node.children.size()) : describe(node);
    faults.add(node.place, path,
               fmt::format("expected the name of one {}, or {{name: {{keys}}}}, found {}", what, found));
    return std::nullopt;
  }
  const auto block = std::ranges::find(blocks, name, &Block::name);
  if (block == blocks.end()) {
    std::vector<std::string> names;
    for (const Block& known : blocks) names.push_back(known.name);
    faults.add(place, path, fmt::format("unknown {} `{}`; {}", what, name, expected_one_of(name, names)));
    return std::nullopt;
  }
  method.index = static_cast<size_t>(block - blocks.begin());
  method.block = &*block;
  method.path = joined(path, name);
  return method;
}

nlohmann::json resolved_method(const Node& node, const std::string& path, const std::vector<Block>& blocks,
                               std::string_view what, Faults& faults) {
  const auto method = read_method(node, path, blocks, what, faults);
  if (!method) return nullptr;
  return {{method->block->name, KeyReader(*method->block, method->keys, method->path, faults).resolved()}};
}

}  // namespace tutti::launch
