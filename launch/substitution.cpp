// `${variable}` in a job file.
#include "launch/substitution.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string_view>

namespace tutti::launch {
namespace {

/// A text cut at its variables.
struct Piece {
  std::string text;
  bool is_variable = false;
};

constexpr std::string_view kOpen = "${";
constexpr std::string_view kEnvironment = "env:";

/// Nothing when a `${` is not closed.
std::optional<std::vector<Piece>> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::string plain;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      plain += kOpen;
      text.remove_prefix(3);
    } else if (text.starts_with(kOpen)) {
      const size_t close = text.find('}');
      if (close == std::string_view::npos) return std::nullopt;
      if (!plain.empty()) pieces.push_back({plain});
      plain.clear();
      pieces.push_back({std::string(text.substr(kOpen.size(), close - kOpen.size())), true});
      text.remove_prefix(close + 1);
    } else {
      plain += text.front();
      text.remove_prefix(1);
    }
  }
  if (!plain.empty()) pieces.push_back({plain});
  return pieces;
}

class Substitution {
 public:
  Substitution(const Variables& variables, const std::string& path, Faults& faults)
      : variables_(variables), path_(path), faults_(faults) {}

  Node apply(const Node& node) const {
    Node result = node.kind == Node::Kind::kScalar ? scalar(node) : node;
    result.key = node.key;
    result.key_place = node.key_place;
    result.inherited = node.inherited;
    if (node.kind == Node::Kind::kScalar) return result;
    for (Node& child : result.children) {
      child = apply(child);
      if (node.kind == Node::Kind::kMap) child.key = in_text(child.key, child.key_place).value_or(child.key);
    }
    check_keys(result);
    return result;
  }

 private:
  void check_keys(const Node& map) const {
    for (const Node& child : map.children) {
      if (map.kind == Node::Kind::kMap && map.find(child.key) != &child) {
        faults_.add(child.key_place, path_, fmt::format("duplicate key `{}`; remove one", child.key));
      }
    }
  }

  Node scalar(const Node& node) const {
    if (node.text.find(kOpen) == std::string::npos) return node;
    const auto pieces = pieces_of(node.text);
    if (pieces && pieces->size() == 1 && pieces->front().is_variable) {
      return value_of(pieces->front().text, node.place).value_or(node);
    }
    Node result = node;
    if (const auto text = in_text(node.text, node.place)) result.text = *text;
    result.quoted = true;
    return result;
  }

  std::optional<std::string> in_text(const std::string& text, const Place& place) const {
    if (text.find(kOpen) == std::string::npos) return text;
    const auto pieces = pieces_of(text);
    if (!pieces) {
      faults_.add(place, path_, fmt::format("expected `}}` after `${{` in `{}`", text));
      return std::nullopt;
    }
    std::string result;
    for (const Piece& piece : *pieces) {
      if (!piece.is_variable) {
        result += piece.text;
        continue;
      }
      const auto value = value_of(piece.text, place);
      const auto inserted = value ? source_text(*value) : std::nullopt;
      if (value && !inserted) {
        faults_.add(place, path_,
                    fmt::format("expected a number, text or flat list for `${{{}}}` inside text, found {}", piece.text,
                                describe(*value)));
      }
      if (!inserted) return std::nullopt;
      result += *inserted;
    }
    return result;
  }

  /// Lists of scalars are joined by "-", so that names can tell them apart.
  static std::optional<std::string> source_text(const Node& value) {
    if (value.kind == Node::Kind::kScalar) return value.text;
    if (value.kind != Node::Kind::kList) return std::nullopt;
    std::string result;
    for (const Node& item : value.children) {
      if (item.kind != Node::Kind::kScalar) return std::nullopt;
      result += (result.empty() ? "" : "-") + item.text;
    }
    return result;
  }

  std::optional<Node> value_of(const std::string& name, const Place& place) const {
    if (name.starts_with(kEnvironment)) {
      const std::string variable = name.substr(kEnvironment.size());
      if (const char* value = std::getenv(variable.c_str())) return Node::scalar(value, place);
      faults_.add(place, path_, fmt::format("expected the environment variable {} to be set, found none", variable));
      return std::nullopt;
    }
    if (const auto found = variables_.find(name); found != variables_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [known_name, value] : variables_) known.push_back(known_name);
    faults_.add(place, path_,
                fmt::format("unknown variable `${{{}}}`; {}", name,
                            known.empty() ? "this block has no `sweep` that sets it" : expected_one_of(name, known)));
    return std::nullopt;
  }

  const Variables& variables_;
  const std::string& path_;
  Faults& faults_;
};

}  // namespace

Node substitute(const Node& node, const Variables& variables, const std::string& path, Faults& faults) {
  return Substitution(variables, path, faults).apply(node);
}

std::vector<std::string> variables_in(const std::string& text) {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_of(text).value_or(std::vector<Piece>{})) {
    if (piece.is_variable) names.push_back(piece.text);
  }
  return names;
}

}  // namespace tutti::launch
