// The layer list: the job file's `layers:` and zoo entries, turned into a graph.
#ifndef TUTTI_SRC_GRAPH_LAYER_LIST_H
#define TUTTI_SRC_GRAPH_LAYER_LIST_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace tutti::graph {

/// A fault in one layer. `path` leads to it in the list: "3", "2.residual.0", "2.branches.paths.1.0".
class LayerError : public GraphError {
 public:
  LayerError(std::string path, const std::string& message) : GraphError(message), path(std::move(path)) {}
  std::string path;
};

/// The declaration of one key of one layer: read by the builder, by the job file's checks and by its documentation.
struct LayerKey {
  std::string name;
  std::string type;           ///< "int", "int or list of ints", "float", "bool", "string", "list of layers", ...
  std::string default_value;  ///< as written in a job file; empty = required
  std::string meaning;
};

struct LayerDeclaration {
  std::string name;       ///< "conv2d"
  std::string shorthand;  ///< the key that `name: value` stands for ("out" in {linear: 10}); empty = none
  std::vector<LayerKey> keys;
  std::string meaning;
};

/// All layers, and zoo entries, in the order of the documentation.
const std::vector<LayerDeclaration>& layer_declarations();

/// An input of a model: shape without the batch, and type (kFloat, or kLong for indices).
struct InputShape {
  std::string name = "x";
  std::vector<int64_t> shape;
  at::ScalarType type = at::kFloat;
};

/// Builds the graph of a layer list. `layers` is a JSON array; an element is a name ("relu"), or an object with one
/// key: {"linear": 10}, {"conv2d": {"out": 8, "kernel": 5}}, {"residual": [..]}, {"branches": {...}}, {"mlp": {...}}.
/// Parameter and buffer names are those of the equal torch.nn.Sequential (zoo entries alone in a list: torchvision's).
/// Throws LayerError naming the layer, what was expected, what was found.
Graph build_layer_list(const nlohmann::json& layers, const InputShape& input);

/// The source of a model.py whose `Model()` has the same modules and state-dict names (needs only torch).
std::string python_source(const nlohmann::json& layers, const InputShape& input);

}  // namespace tutti::graph

#endif
