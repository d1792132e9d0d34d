// A graph compiled for one grain size: a list of instructions which any number of frames can run.
#ifndef TUTTI_SRC_PROGRAM_PROGRAM_H
#define TUTTI_SRC_PROGRAM_PROGRAM_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/frame.h"
#include "src/program/instruction.h"

namespace tutti::program {

/// How a graph becomes a program.
struct CompileOptions {
  enum class Engine {
    kInstructions,  ///< an instruction for each node that has one, islands for the others
    kIsland,        ///< the whole graph as one autograd island: the oracle
  };
  Engine engine = Engine::kInstructions;
  at::ScalarType precision = at::kFloat;  ///< kFloat or kDouble: what the graph's kFloat stands for
};

/// Immutable; holds no reference to any model's memory. One program serves every model of its group, every batch size
/// (a short last grain too) and both training and evaluation (Frame::training).
class Program {
 public:
  /// Throws graph::GraphError for a graph that cannot run.
  static std::shared_ptr<const Program> compile(std::shared_ptr<const graph::Graph> graph,
                                                const CompileOptions& options = {});
  ~Program();

  const graph::Graph& graph() const;
  at::ScalarType precision() const;
  std::vector<const Instruction*> instructions() const;

  /// A frame with the right number of slots and constants bound. Inputs, parameters, parameter gradients and buffers
  /// are the caller's to bind before each run (views that stay bound may be left).
  Frame make_frame() const;

  /// Runs all instructions on frame.values. Afterwards the outputs stand in frame.values. With frame.training, what
  /// backward needs is kept; without, values are dropped after their last use.
  void forward(Frame& frame) const;

  /// Runs backward from the gradients of the outputs (frame.gradients, put there by the caller). Afterwards every
  /// trainable parameter's bound gradient view holds exactly this run's gradient (zero where it has no influence);
  /// everything else is dropped. A gradient of an input is not computed.
  void backward(Frame& frame) const;

  /// Drops the inputs and everything that is not bound, after a run or after an exception.
  void clear(Frame& frame) const;

  /// Predicted peak of transient bytes of a training run (or an evaluation run) over `rows` rows: 1 to 1.2 times what
  /// it takes of a LaneRegion, the gradients of the outputs included. A rough guess where there are islands: run a
  /// trial step.
  int64_t transient_bytes(int64_t rows, bool training) const;

  /// The operators that run inside autograd islands, each once: "aten::foo".
  std::vector<std::string> islands() const;

 private:
  struct Compiled;
  explicit Program(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tutti::program

#endif
