// The `--set KEY=VALUE` options.
#include "launch/job_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "launch/job_document.h"
#include "launch/key_declarations.h"

namespace tutti::launch {
namespace {

constexpr std::string_view kModels = "models.";

/// The first part of a path.
std::string_view head_of(std::string_view path) { return path.substr(0, path.find('.')); }

/// What follows the first `size` characters and a dot.
std::string_view rest_of(std::string_view path, size_t size) {
  return size >= path.size() ? std::string_view{} : path.substr(size + 1);
}

/// The longest key of a mapping that the path begins with (keys may hold dots); else the path's head.
std::string_view key_in(const Node& map, std::string_view path) {
  std::string_view longest;
  for (const Node& child : map.children) {
    const bool begins =
        path.starts_with(child.key) && (path.size() == child.key.size() || path[child.key.size()] == '.');
    if (begins && child.key.size() > longest.size()) longest = child.key;
  }
  return longest.empty() ? head_of(path) : path.substr(0, longest.size());
}

}  // namespace

JobSettings::JobSettings(const std::vector<std::string>& settings, Faults& faults) : faults_(faults) {
  for (size_t index = 0; index < settings.size(); ++index) {
    const std::string& text = settings[index];
    const Place place{0, static_cast<int>(index)};
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      faults.add(place, "", "expected KEY=VALUE, as in `models.0.epochs=5`");
      continue;
    }
    if (std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), '.') >= kMaxDepth) {
      faults.add(place, "", fmt::format("expected a KEY of at most {} levels, found more", kMaxDepth));
      continue;
    }
    settings_.push_back(
        {text.substr(0, equals), parse_document(text.substr(equals + 1), faults, place.setting), place});
  }
}

void JobSettings::apply_to_file(Node& root) {
  for (Setting& setting : settings_) {
    if (setting.path.starts_with(kModels)) continue;
    setting.used = true;
    set(root, setting.path, setting);
  }
}

void JobSettings::apply_to_block(Node& block, int64_t index, const std::string& written_name) {
  apply_to_model(block, "*", true);
  apply_to_model(block, std::to_string(index), true);
  apply_to_model(block, written_name, false);
}

void JobSettings::apply_to_variant(Node& variant, const std::string& name) { apply_to_model(variant, name, false); }

/// Without `any_key`, only settings whose key is declared: "mlp" must not take what is meant for "mlp.v2".
void JobSettings::apply_to_model(Node& model, std::string_view selector, bool any_key) {
  for (Setting& setting : settings_) {
    std::string_view path = setting.path;
    if (!path.starts_with(kModels)) continue;
    path.remove_prefix(kModels.size());
    if (selector.empty() || !path.starts_with(selector) || path.size() <= selector.size() ||
        path[selector.size()] != '.')
      continue;
    path = rest_of(path, selector.size());
    if (!any_key && model_block().find(head_of(path)) == nullptr) continue;
    setting.used = true;
    set(model, path, setting);
  }
}

void JobSettings::set(Node& node, std::string_view path, const Setting& setting) {
  if (node.kind == Node::Kind::kList) {
    const std::string head(head_of(path));
    const auto index = integer_of(Node::scalar(head, {}));
    if (!index || *index < 0 || *index >= static_cast<int64_t>(node.children.size())) {
      faults_.add(setting.place, "",
                  fmt::format("expected an index from 0 to {}, found `{}`",
                              static_cast<int64_t>(node.children.size()) - 1, head));
      return;
    }
    Node& item = node.children[static_cast<size_t>(*index)];
    if (head.size() == path.size()) {
      item = setting.value;
    } else {
      set(item, rest_of(path, head.size()), setting);
    }
    return;
  }
  if (node.kind != Node::Kind::kMap) {
    // `optimizer: adam` is short for `optimizer: {adam: {}}`.
    node.kind = Node::Kind::kMap;
    node.place = setting.place;
  }
  const std::string key(key_in(node, path));
  if (key.size() == path.size()) {
    node.put(key, setting.place, setting.value);
    return;
  }
  Node* child = node.find(key);
  if (child == nullptr) child = &node.put(key, setting.place, Node::map(setting.place));
  child->inherited = false;
  set(*child, rest_of(path, key.size()), setting);
}

void JobSettings::report_unused(const std::vector<std::string>& names) {
  for (const Setting& setting : settings_) {
    if (setting.used) continue;
    const std::string_view path = std::string_view(setting.path).substr(kModels.size());
    std::string_view model;
    for (const std::string& name : names) {
      const bool begins = path.starts_with(name) && path.size() > name.size() && path[name.size()] == '.';
      if (begins && name.size() > model.size()) model = name;
    }
    if (!model.empty()) {
      const std::string key(head_of(rest_of(path, model.size())));
      faults_.add(setting.place, "",
                  fmt::format("unknown key `{}`; {}", key, expected_one_of(key, model_block().key_names())));
    } else {
      faults_.add(setting.place, "",
                  fmt::format("no model `{}`; {}, or an index, or *", path.substr(0, path.rfind('.')),
                              expected_one_of(path.substr(0, path.rfind('.')), names)));
    }
  }
}

}  // namespace tutti::launch
