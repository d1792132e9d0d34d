// What an instruction's factory gets to know of the node that it compiles.
#ifndef TUTTI_SRC_PROGRAM_NODE_CONTEXT_H
#define TUTTI_SRC_PROGRAM_NODE_CONTEXT_H

#include <cstdint>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/gradient.h"
#include "src/program/lane_region.h"
#include "src/program/layouts.h"

namespace tutti::program {

/// What the nodes of a program that is being compiled have in common.
struct ProgramContext {
  const graph::Graph& graph;
  at::ScalarType precision;
  const Layouts& layouts;
  int64_t& slot_count;  ///< saved slots so far
};

/// A node, its arguments by position in the operator's schema, and where their gradients go.
/// A constant of another type than asked for is a graph::GraphError that names the node.
class NodeContext {
 public:
  /// `targets` holds one list per argument, with one entry per value of the argument. All references must outlive this
  /// object.
  NodeContext(ProgramContext& program, int64_t node_index, const std::vector<std::vector<GradientTarget>>& targets);

  const graph::Graph& graph() const { return program_.graph; }
  at::ScalarType precision() const { return program_.precision; }
  const Layouts& layouts() const { return program_.layouts; }
  const graph::Node& node() const { return node_; }
  int64_t index() const { return index_; }  ///< canonical topological index

  /// kNoValue where an optional tensor is absent.
  graph::ValueId value(size_t argument) const;
  std::vector<graph::ValueId> values(size_t argument) const;
  graph::ValueId output() const { return node_.outputs.front(); }
  GradientTarget target(size_t argument) const;
  const std::vector<GradientTarget>& targets(size_t argument) const { return targets_[argument]; }
  /// With kBatch where the batch is.
  const std::vector<int64_t>& shape(graph::ValueId id) const { return graph().values[id].shape; }
  int64_t rank(graph::ValueId id) const { return static_cast<int64_t>(shape(id).size()); }
  /// The type in this program: of its precision where the graph says kFloat or kComplexFloat.
  at::ScalarType type(graph::ValueId id) const;

  const c10::IValue& constant(size_t argument) const;
  int64_t integer(size_t argument) const;
  double number(size_t argument) const;
  bool flag(size_t argument) const;
  std::string text(size_t argument) const;
  /// A list of `length` integers; one integer, or a list of one, stands for `length` equal ones.
  std::vector<int64_t> integers(size_t argument, size_t length) const;
  std::vector<int64_t> integers(size_t argument) const;

  /// A slot of Frame::saved for this instruction's own use.
  int64_t new_slot() const { return program_.slot_count++; }

 private:
  [[noreturn]] void fail(size_t argument, const char* expected) const;

  ProgramContext& program_;
  const graph::Node& node_;
  int64_t index_;
  const std::vector<std::vector<GradientTarget>>& targets_;
};

/// Predicted bytes of a value in a lane region.
int64_t value_bytes(const graph::Value& value, int64_t rows, int64_t float_bytes);
/// Number of elements of a value for a grain of `rows` rows.
int64_t element_count(const graph::Value& value, int64_t rows);

}  // namespace tutti::program

#endif
