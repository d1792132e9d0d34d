// A job file's content as a tree: lookups and the typing of scalars.
#include "launch/job_node.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace tutti::launch {
namespace {

/// The whole of `text` as a number of type T, with an optional sign.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_plain_scalar(const Node& node) { return node.kind == Node::Kind::kScalar && !node.quoted; }

/// Bytes in one of the unit; 0 for an unknown unit.
double unit_bytes(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 11> kUnits{{{"B", 1},
                                                                        {"kB", 1e3},
                                                                        {"KB", 1e3},
                                                                        {"MB", 1e6},
                                                                        {"GB", 1e9},
                                                                        {"TB", 1e12},
                                                                        {"KiB", 0x1p10},
                                                                        {"kiB", 0x1p10},
                                                                        {"MiB", 0x1p20},
                                                                        {"GiB", 0x1p30},
                                                                        {"TiB", 0x1p40}}};
  for (const auto& [name, bytes] : kUnits) {
    if (name == unit) return bytes;
  }
  return 0;
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  if (kind != Kind::kMap) return nullptr;
  for (const Node& child : children) {
    if (child.key == name) return &child;
  }
  return nullptr;
}

Node* Node::find(std::string_view name) { return const_cast<Node*>(std::as_const(*this).find(name)); }

Node& Node::put(std::string name, Place name_place, Node value) {
  value.key = std::move(name);
  value.key_place = name_place;
  if (Node* existing = find(value.key)) return *existing = std::move(value);
  return children.emplace_back(std::move(value));
}

int64_t node_count(const Node& node) {
  int64_t count = 1;
  for (const Node& child : node.children) count += node_count(child);
  return count;
}

std::optional<int64_t> integer_of(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  return parse_number<int64_t>(node.text);
}

std::optional<double> number_of(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  const auto value = parse_number<double>(node.text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<bool> boolean_of(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  return std::nullopt;
}

std::optional<std::string> text_of(const Node& node) {
  if (node.kind != Node::Kind::kScalar) return std::nullopt;
  return node.text;
}

std::optional<int64_t> bytes_of(const Node& node) {
  if (const auto plain = integer_of(node)) return plain;
  if (node.kind != Node::Kind::kScalar) return std::nullopt;
  const std::string_view text = node.text;
  const size_t unit_begin = text.find_first_not_of("0123456789.");
  if (unit_begin == std::string_view::npos || unit_begin == 0) return std::nullopt;
  const auto count = parse_number<double>(text.substr(0, unit_begin));
  std::string_view unit = text.substr(unit_begin);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const double bytes = count ? *count * unit_bytes(unit) : 0;
  if (bytes < 1 || bytes >= 0x1p62) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

nlohmann::json json_of(const Node& node) {
  if (node.kind == Node::Kind::kNull) return nullptr;
  if (node.kind == Node::Kind::kScalar) {
    if (const auto value = integer_of(node)) return *value;
    if (const auto value = number_of(node)) return *value;
    if (const auto value = boolean_of(node)) return *value;
    return node.text;
  }
  nlohmann::json result = node.kind == Node::Kind::kList ? nlohmann::json::array() : nlohmann::json::object();
  for (const Node& child : node.children) {
    if (node.kind == Node::Kind::kList) {
      result.push_back(json_of(child));
    } else {
      result[child.key] = json_of(child);
    }
  }
  return result;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a mapping";
    case Node::Kind::kScalar:
      break;
  }
  return node.quoted ? "the text \"" + node.text + "\"" : "`" + node.text + "`";
}

}  // namespace tutti::launch
