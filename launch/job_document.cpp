// YAML text into a tree of nodes; the only source that knows yaml-cpp.
#include "launch/job_document.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "data/file_kind.h"

namespace tutti::launch {
namespace {

/// The tree grew beyond a limit; `message` says which.
struct LimitReached {
  Place place;
  std::string message;
};

std::string depth_message() { return fmt::format("expected at most {} levels of nesting, found more", kMaxDepth); }

class Converter {
 public:
  Converter(Faults& faults, int setting) : faults_(faults), setting_(setting) {}

  Node convert(const YAML::Node& yaml, int depth = 0) {
    Node node;
    node.place = place_of(yaml);
    check_limits(node.place, depth);
    switch (yaml.Type()) {
      case YAML::NodeType::Scalar:
        node.kind = Node::Kind::kScalar;
        node.text = yaml.Scalar();
        node.quoted = yaml.Tag() != "?";
        break;
      case YAML::NodeType::Sequence:
        node.kind = Node::Kind::kList;
        for (const YAML::Node& item : yaml) node.children.push_back(convert(item, depth + 1));
        break;
      case YAML::NodeType::Map: {
        node.kind = Node::Kind::kMap;
        KeyPlaces places;
        for (const auto& member : yaml) convert_member(node, places, member.first, member.second, depth);
        break;
      }
      default:
        break;
    }
    return node;
  }

 private:
  using KeyPlaces = std::unordered_map<std::string, Place>;  // of one mapping's keys

  Place place_of(const YAML::Node& yaml) const {
    if (setting_ >= 0) return {0, setting_};
    return {yaml.Mark().line + 1, -1};
  }

  void check_limits(const Place& place, int depth) {
    if (++count_ > kMaxNodes) {
      throw LimitReached{place,
                         fmt::format("expected at most {} values with aliases written out, found more", kMaxNodes)};
    }
    if (depth > kMaxDepth) {
      throw LimitReached{place, depth_message()};
    }
  }

  void convert_member(Node& map, KeyPlaces& places, const YAML::Node& key, const YAML::Node& value, int depth) {
    const Place place = place_of(key);
    if (!key.IsScalar()) {
      faults_.add(place, "", "expected text as a key, found a list or mapping");
      return;
    }
    const auto [first, is_new] = places.emplace(key.Scalar(), place);
    if (!is_new) {
      faults_.add(place, "",
                  fmt::format("duplicate key `{}`, first given at {}; remove one", key.Scalar(),
                              faults_.text_of(first->second)));
      return;
    }
    Node child = convert(value, depth + 1);
    child.key = key.Scalar();
    child.key_place = place;
    if (value.IsNull()) child.place = place;
    map.children.push_back(std::move(child));
  }

  Faults& faults_;
  int setting_;
  int64_t count_ = 0;
};

/// True where line number `line` (from 0), or one above it, holds `${` outside quotes: inside { } its brace ends the
/// mapping, and the parser may notice that only later.
bool has_bare_variable(std::string_view text, int line) {
  char quote = '\0';
  for (size_t i = 0; i < text.size() && line >= 0; ++i) {
    const char character = text[i];
    if (character == '\n') {
      quote = '\0';
      --line;
    } else if (quote != '\0') {
      if (character == quote) quote = '\0';
    } else if (character == '"' || character == '\'') {
      quote = character;
    } else if (text.substr(i, 2) == "${") {
      return true;
    }
  }
  return false;
}

}  // namespace

Node parse_document(const std::string& text, Faults& faults, int setting) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      faults.add({0, setting}, "", fmt::format("expected one YAML document, found {}", documents.size()));
      return {};
    }
    return documents.empty() ? Node{} : Converter(faults, setting).convert(documents.front());
  } catch (const YAML::DeepRecursion& error) {  // the parser's own limit, far beyond kMaxDepth
    faults.add(setting >= 0 ? Place{0, setting} : Place{error.mark.line + 1, -1}, "", depth_message());
  } catch (const YAML::Exception& error) {
    const Place place = setting >= 0 ? Place{0, setting} : Place{error.mark.line + 1, -1};
    const std::string hint =
        has_bare_variable(text, error.mark.line) ? "; write text with `${...}` in quotes: \"a-${b}\"" : "";
    faults.add(place, "", fmt::format("not YAML: {} (column {}){}", error.msg, error.mark.column + 1, hint));
  } catch (const LimitReached& limit) {
    faults.add(limit.place, "", limit.message);
  }
  return {};
}

Node read_document(const std::filesystem::path& file, Faults& faults) {
  if (const std::string other = data::other_than_regular_file(file); !other.empty()) {
    std::error_code error;
    faults.add({}, "",
               fmt::format("expected a job file, found {}; {}", other,
                           std::filesystem::is_directory(file, error)
                               ? "name the file in it"
                               : "write the text to a regular file first, which every rank can read"));
    return {};
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    faults.add({}, "",
               fmt::format("cannot open the job file: {}; check its path and permissions", std::strerror(errno)));
    return {};
  }
  std::string text(static_cast<size_t>(kMaxFileBytes) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (static_cast<int64_t>(text.size()) > kMaxFileBytes) {
    faults.add({}, "", fmt::format("expected a job file of at most {} bytes, found a larger one", kMaxFileBytes));
    return {};
  }
  const size_t fault_count = faults.added();
  Node root = parse_document(text, faults);
  if (root.kind == Node::Kind::kNull && faults.added() == fault_count) {
    faults.add({}, "", "expected `run`, `data` and `models`, found an empty file");
  }
  return root;
}

}  // namespace tutti::launch
