// The program of a .pt2 archive as plain structs: exactly what torch.export's schema (major version 8) says.
#ifndef TUTTI_SRC_GRAPH_PT2_PROGRAM_H
#define TUTTI_SRC_GRAPH_PT2_PROGRAM_H

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/graph/pt2_schema.h"

namespace tutti::graph {

struct Pt2Graph;

struct Pt2Tensor {
  std::string name;
};
/// Tensors in a list, some of which may be none.
struct Pt2Tensors {
  std::vector<std::optional<std::string>> names;
};
/// A number that a node computes.
struct Pt2Symbol {
  std::string name;
};
using Pt2Number = std::variant<int64_t, double, bool, Pt2Symbol>;
struct Pt2Numbers {
  std::vector<Pt2Number> numbers;
};
struct Pt2Device {
  std::string type;  ///< the exporter's: "cpu", "cuda"
};

/// An argument of a node, an input or an output of a graph. std::monostate is none.
using Pt2Argument =
    std::variant<std::monostate, Pt2Tensor, Pt2Tensors, Pt2Number, Pt2Numbers, std::string, at::ScalarType,
                 at::MemoryFormat, at::Layout, Pt2Device, std::shared_ptr<const Pt2Graph>>;

struct Pt2NamedArgument {
  std::string name;  ///< of the operator's schema; empty for higher-order operators
  Pt2Argument argument;
};

struct Pt2Node {
  std::string target;  ///< "torch.ops.aten.conv2d.default"
  std::string name;
  std::vector<Pt2NamedArgument> inputs;
  std::vector<Pt2Argument> outputs;
  std::string module_path;  ///< of the module whose code it comes from: "body.0"; empty for the outermost
};

struct Pt2Graph {
  std::vector<Pt2Argument> inputs;
  std::vector<Pt2Argument> outputs;
  std::vector<Pt2Node> nodes;
  std::map<std::string, Pt2TensorMeta> input_metas;  ///< by name, of the inputs that are tensors
};

struct Pt2Input {
  enum class Kind { kParameter, kBuffer, kTensorConstant, kUserInput, kConstantInput };
  Kind kind = Kind::kUserInput;
  std::string state_name;  ///< of a parameter, buffer or tensor constant
  bool persistent = true;  ///< of a buffer
};

struct Pt2Output {
  enum class Kind { kUserOutput, kBufferMutation, kUserInputMutation };
  Kind kind = Kind::kUserOutput;
  std::string state_name;  ///< of the buffer
};

struct Pt2Range {
  std::optional<int64_t> least, greatest;
};

struct Pt2Program {
  Pt2Graph graph;
  std::vector<Pt2Input> inputs;            ///< parallel to graph.inputs
  std::vector<Pt2Output> outputs;          ///< parallel to graph.outputs
  std::map<std::string, Pt2Range> ranges;  ///< of symbols: "s77"
};

/// Throws GraphError, naming the node and what was found, for another schema version, unknown kinds of arguments, and
/// JSON that does not follow the schema.
Pt2Program read_pt2_program(const nlohmann::json& program);

}  // namespace tutti::graph

#endif
