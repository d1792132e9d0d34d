// Reads a mapping of the job file through the declarations of its keys.
#ifndef TUTTI_LAUNCH_KEY_READER_H
#define TUTTI_LAUNCH_KEY_READER_H

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job_faults.h"
#include "launch/job_node.h"
#include "launch/key_declarations.h"

namespace tutti::launch {

/// One mapping, read key by key. Unknown keys, missing required keys, wrong types and values out of bounds become
/// faults; what is then returned is the default, or zero. Asking for a key that is not declared, or as another type
/// than declared, is a std::logic_error. Holds references to block, node and faults.
class KeyReader {
 public:
  /// `node` must be a mapping, or null for an empty one; `path` leads to it in the file ("models.0.optimizer.adam").
  KeyReader(const Block& block, const Node& node, std::string path, Faults& faults);

  bool declares(std::string_view key) const { return block_.find(key) != nullptr; }
  /// The value as written; null when absent, or null and not required.
  const Node* node(std::string_view key) const;
  bool has(std::string_view key) const { return node(key) != nullptr; }

  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  int64_t bytes(std::string_view key) const;
  std::string text(std::string_view key) const;  ///< of kText or kChoice; empty where the default is none
  std::optional<int64_t> optional_integer(std::string_view key) const;
  std::optional<double> optional_number(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// The declared default, as written in a job file.
  const std::string& default_text(std::string_view key) const { return declared(key).default_value; }
  /// All bit-relevant keys but nested ones, with their values or defaults; null where there is neither.
  nlohmann::json resolved() const;

  /// Adds a fault of this key's value, or of the block where the key is absent.
  void fault(std::string_view key, std::string_view message) const;
  /// What fault() would add, for a warning.
  std::string fault_text(std::string_view key, std::string_view message) const;
  std::string path_of(std::string_view key) const;
  Place place_of(std::string_view key) const;
  const std::string& path() const { return path_; }

 private:
  const Key& declared(std::string_view key) const;
  const Key& declared(std::string_view key, std::initializer_list<ValueType::Kind> kinds) const;
  void check_keys() const;
  void wrong_type(const Key& key, const Node& node) const;
  nlohmann::json json_value(const Key& key) const;
  template <typename T>
  std::optional<T> scalar(const Key& key, std::optional<T> (*parse)(const Node&)) const;
  template <typename T>
  std::vector<T> list(const Key& key, std::optional<T> (*parse)(const Node&)) const;

  const Block& block_;
  const Node& node_;
  std::string path_;
  Faults& faults_;
};

/// A choice among named blocks, with the chosen one's keys.
struct Method {
  size_t index = 0;  ///< in the list of blocks
  const Block* block = nullptr;
  Node keys;         ///< a mapping, or null
  std::string path;  ///< of `keys`
};

/// Reads "name" or {name: {keys}}. Anything else, and an unknown name, becomes a fault. `what` is the noun for
/// messages: "optimizer".
std::optional<Method> read_method(const Node& node, const std::string& path, const std::vector<Block>& blocks,
                                  std::string_view what, Faults& faults);

/// The same as JSON with all keys resolved: {name: {key: value}}; null at a fault.
nlohmann::json resolved_method(const Node& node, const std::string& path, const std::vector<Block>& blocks,
                               std::string_view what, Faults& faults);

}  // namespace tutti::launch

#endif
