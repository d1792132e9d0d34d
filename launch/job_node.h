// A job file's content as a tree whose nodes know where they were written.
#ifndef TUTTI_LAUNCH_JOB_NODE_H
#define TUTTI_LAUNCH_JOB_NODE_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

/// Where a node was written: a line of the job file, or a `--set` option of the command line.
struct Place {
  int line = 0;      ///< 1 for the first; 0 = the file as a whole
  int setting = -1;  ///< index of the `--set` option; -1 = none
  bool operator==(const Place&) const = default;
};

/// One value of a job file. Scalars keep their text: what they are is decided where they are read.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     ///< of a scalar, as written
  bool quoted = false;  ///< a scalar that is text whatever it looks like
  Place place;
  std::string key;             ///< of a mapping's child
  Place key_place;             ///< of a mapping's child
  bool inherited = false;      ///< of a model's child: comes from `defaults`
  std::vector<Node> children;  ///< of a list or a mapping, in the order of the file

  static Node scalar(std::string text, Place place) {
    return {Kind::kScalar, std::move(text), false, place, {}, {}, false, {}};
  }
  static Node map(Place place) { return {Kind::kMap, {}, false, place, {}, {}, false, {}}; }

  /// The child of a mapping with this key; null when there is none.
  const Node* find(std::string_view name) const;
  Node* find(std::string_view name);

  /// Gives a mapping's key this value, which keeps its own place; an existing key is replaced.
  Node& put(std::string name, Place name_place, Node value);
};

/// This node and all below it.
int64_t node_count(const Node& node);

/// The values of scalars, or nothing where the node is something else. Quoted scalars are text only.
std::optional<int64_t> integer_of(const Node& node);
std::optional<double> number_of(const Node& node);  ///< finite; whole numbers too
std::optional<bool> boolean_of(const Node& node);
std::optional<std::string> text_of(const Node& node);
/// "8GiB", "512MB", "1.5 GB", or a whole number of bytes.
std::optional<int64_t> bytes_of(const Node& node);

/// The node as JSON, scalars typed.
nlohmann::json json_of(const Node& node);

/// What a message calls this node: "a list", "`abc`", "the text \"5\"".
std::string describe(const Node& node);

}  // namespace tutti::launch

#endif
