// One step of a program: forward and backward of one operator (or of one island) on a frame.
#ifndef TUTTI_SRC_PROGRAM_INSTRUCTION_H
#define TUTTI_SRC_PROGRAM_INSTRUCTION_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/frame.h"

namespace tutti::program {

/// A gradient that an instruction's backward produces, and how it is to be delivered.
struct GradientTarget {
  enum class Mode { kNone, kWrite, kAdd };
  graph::ValueId value = graph::kNoValue;
  Mode mode = Mode::kNone;  ///< none: nobody needs it; write: first writer; add: there is one already
  bool bound = false;       ///< a parameter's: written into the bound view; otherwise a tensor may take its place
};

/// Delivers a freshly computed gradient as the target's mode says. A bound gradient is copied or added into its view;
/// an unbound one is kept, or added to what is there. May take over `gradient`'s memory.
void deliver(Frame& frame, const GradientTarget& target, at::Tensor gradient);

/// The compiled form of a node. Immutable, shared by all frames and threads.
class Instruction {
 public:
  virtual ~Instruction() = default;

  /// Computes the outputs from frame.values. Runs with grad mode off.
  virtual void forward(Frame& frame) const = 0;

  /// Computes the gradients of its inputs from the gradients of its outputs, and delivers them. Called at most once
  /// after each forward, in reverse order of the instructions.
  virtual void backward(Frame& frame) const = 0;

  /// For messages, traces and `tutti plan`: "conv2d", "island(aten::foo)".
  virtual std::string name() const = 0;

  /// Bytes that forward allocates and backward still needs, for a grain of `rows` rows, as far as they are this
  /// instruction's own (not the outputs).
  virtual int64_t saved_bytes(int64_t rows, int64_t element_bytes) const = 0;

  /// Bytes of outputs and scratch that are alive at the most at once inside forward or backward, beyond inputs,
  /// outputs and saved tensors.
  virtual int64_t scratch_bytes(int64_t rows, int64_t element_bytes) const = 0;

  virtual bool is_island() const { return false; }
};

}  // namespace tutti::program

#endif
