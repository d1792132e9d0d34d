// An autograd island: a run of nodes as one instruction, differentiated by LibTorch's autograd.
#ifndef TUTTI_SRC_PROGRAM_AUTOGRAD_ISLAND_H
#define TUTTI_SRC_PROGRAM_AUTOGRAD_ISLAND_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/graph/operator_call.h"
#include "src/program/attention_formula.h"
#include "src/program/dropout.h"
#include "src/program/instruction.h"

namespace tutti::program {

/// What goes into an island and what comes out.
struct IslandBoundary {
  std::vector<int64_t> nodes;           ///< indices into Graph::nodes, ascending
  std::vector<GradientTarget> inputs;   ///< every value from outside, each once; mode none: no gradient
  std::vector<graph::ValueId> outputs;  ///< values that are read outside
};

/// Right for every operator that LibTorch can call and differentiate. Its inputs and outputs are aliases with version
/// counters of their own, so that autograd's checks see writes of the island's own nodes only; the caller keeps inputs
/// and outputs unwritten between forward and backward. aten::dropout and the dropout of attention draw their masks from
/// the frame's Philox stream.
/// A node that only updates a buffer in place is skipped in evaluation.
class AutogradIsland final : public Instruction {
 public:
  /// Throws graph::GraphError for an operator that draws random numbers of its own.
  AutogradIsland(const graph::Graph& graph, IslandBoundary boundary, at::ScalarType precision, int64_t& next_slot);

  void forward(Frame& frame) const override;
  void backward(Frame& frame) const override;
  std::string name() const override;
  std::vector<graph::ValueId> kept_values() const override;
  int64_t saved_bytes(const RunSize& size) const override;
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override;
  bool is_island() const override { return true; }

  /// The operators inside, each node's once: "aten::foo".
  std::vector<std::string> operators() const;

 private:
  struct Step {
    std::optional<graph::OperatorCall> call;  ///< none for dropout
    std::optional<DropoutSite> dropout;
    std::optional<AttentionFormula> attention;  ///< with dropout
    graph::ValueId input = graph::kNoValue;     ///< of dropout; what a write writes into
    graph::ValueId output = graph::kNoValue;
    bool updates_buffer = false;
    std::string name;
    std::string description;
  };

  static Step make_step(const graph::Graph& graph, int64_t node, at::ScalarType precision);
  void run_step(const Step& step, std::vector<at::Tensor>& values, const Frame& frame) const;
  std::vector<at::Tensor> bind_inputs(Frame& frame) const;

  IslandBoundary boundary_;
  std::vector<Step> steps_;
  std::vector<GradientTarget> differentiated_;  ///< the inputs that need a gradient
  int64_t first_input_slot_;                    ///< leaves, in the order of `differentiated_`
  int64_t first_output_slot_;                   ///< outputs with their autograd graph
  std::vector<graph::Value> inner_values_;      ///< results that are not outputs
  std::vector<graph::Value> output_values_;
};

}  // namespace tutti::program

#endif
