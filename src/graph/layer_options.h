// The keys of one layer, checked against its declaration.
#ifndef TUTTI_SRC_GRAPH_LAYER_OPTIONS_H
#define TUTTI_SRC_GRAPH_LAYER_OPTIONS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/graph/layer_list.h"

namespace tutti::graph {

/// A key that is unknown, missing or of a wrong type or value. The message does not yet say in which layer.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One layer's settings, defaults filled in. A key that the declaration does not have cannot be read (logic_error), so
/// the declarations are complete by construction.
class LayerOptions {
 public:
  /// `value` is what stands behind the layer's name: null, a map of keys, or the shorthand's value. Throws OptionError.
  LayerOptions(const LayerDeclaration& declaration, const nlohmann::json& value);

  /// True if the value stood alone, without its key.
  bool is_shorthand() const { return shorthand_; }
  const nlohmann::json& json(const std::string& key) const;
  int64_t integer(const std::string& key) const { return json(key).get<int64_t>(); }
  double number(const std::string& key) const { return json(key).get<double>(); }
  bool boolean(const std::string& key) const { return json(key).get<bool>(); }
  std::string string(const std::string& key) const { return json(key).get<std::string>(); }
  /// True if the key has this word in the place of a number ("same").
  bool is_word(const std::string& key, const std::string& word) const { return json(key) == word; }
  /// `count` numbers: a list of them, or one number for all. Throws OptionError for a list of another length.
  std::vector<int64_t> integers(const std::string& key, int64_t count) const;

 private:
  void read_map(const LayerDeclaration& declaration, const nlohmann::json& map);
  void set(const LayerKey& key, const nlohmann::json& value);

  nlohmann::json values_;
  bool shorthand_ = false;
};

/// The types that LayerKey::type may name.
std::vector<std::string> option_types();

}  // namespace tutti::graph

#endif
