// From a graph to a list of instructions: which node runs how, where gradients go, and when values are dropped.
#ifndef TUTTI_SRC_PROGRAM_COMPILER_H
#define TUTTI_SRC_PROGRAM_COMPILER_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/instruction.h"
#include "src/program/program.h"

namespace tutti::program {

/// An instruction with what a run has to know about it.
struct CompiledStep {
  std::unique_ptr<Instruction> instruction;
  std::string description;             ///< for messages
  std::vector<graph::ValueId> inputs;  ///< each once
  std::vector<graph::ValueId> outputs;
  std::vector<GradientTarget> targets;   ///< the needed ones
  int64_t first_slot = 0, end_slot = 0;  ///< its saved slots
  bool has_backward() const { return !targets.empty(); }

  std::vector<graph::ValueId> dropped_after_training_forward;
  std::vector<graph::ValueId> dropped_after_evaluation;
  std::vector<graph::ValueId> dropped_after_backward;
};

struct CompiledGraph {
  std::shared_ptr<const graph::Graph> graph;
  at::ScalarType precision = at::kFloat;
  std::vector<CompiledStep> steps;
  int64_t slot_count = 0;
  bool has_island = false;
  std::vector<graph::ValueId> results;               ///< every value that a run makes
  std::vector<graph::ValueId> untouched_parameters;  ///< trainable, but no instruction writes their gradient
  std::vector<at::Tensor> constants;                 ///< in the program's precision, as Graph::constants
};

/// Throws graph::GraphError for a graph that cannot run.
CompiledGraph compile_graph(std::shared_ptr<const graph::Graph> graph, const CompileOptions& options);

}  // namespace tutti::program

#endif
