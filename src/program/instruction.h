// One step of a program: forward and backward of one operator (or of one island) on a frame.
#ifndef TUTTI_SRC_PROGRAM_INSTRUCTION_H
#define TUTTI_SRC_PROGRAM_INSTRUCTION_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/frame.h"
#include "src/program/gradient.h"

namespace tutti::program {

enum class Pass { kForward, kBackward };

/// The size of a run, as far as predictions of memory depend on it.
struct RunSize {
  int64_t rows = 0;           ///< of the grain
  int64_t element_bytes = 4;  ///< of the program's precision
};

/// The compiled form of a node. Immutable, shared by all frames and threads.
class Instruction {
 public:
  virtual ~Instruction() = default;

  /// Computes the outputs from frame.values. Runs with grad mode off.
  virtual void forward(Frame& frame) const = 0;

  /// Computes the gradients of its inputs from the gradients of its outputs, and delivers them in the order of the
  /// arguments (where one value is two arguments, the second gradient is added to the first). Called at most once after
  /// each forward, in reverse order of the instructions.
  virtual void backward(Frame& frame) const = 0;

  /// For messages, traces and `tutti plan`: "conv2d", "island(aten::foo)".
  virtual std::string name() const = 0;

  /// The values, among its inputs and outputs, that backward reads: they are kept until then.
  virtual std::vector<graph::ValueId> kept_values() const { return {}; }

  /// True where the output is a view of the first input.
  virtual bool shares_memory(bool /*training*/) const { return false; }
  /// True where the gradients of the inputs are views of the output's gradient.
  virtual bool shares_gradient() const { return shares_memory(/*training=*/true); }

  /// True where backward adds into the gradients of its inputs in place, without making them first.
  virtual bool adds_in_place() const { return false; }

  /// Predicted bytes that forward allocates and backward still needs, beyond inputs and outputs.
  virtual int64_t saved_bytes(const RunSize& /*size*/) const { return 0; }

  /// Predicted bytes that a pass needs at the most at once beyond inputs, outputs, saved tensors and the gradients
  /// that it leaves.
  virtual int64_t scratch_bytes(const RunSize& /*size*/, Pass /*pass*/) const { return 0; }

  virtual bool is_island() const { return false; }
};

}  // namespace tutti::program

#endif
