// The walk repeats what Program::forward and Program::backward do, with sizes in place of tensors.
#include "src/program/memory_prediction.h"

#include <algorithm>

#include "src/program/node_context.h"

namespace tutti::program {
namespace {

using graph::ValueId;

/// Tensors by ValueId, several of which may share one block of memory.
class BlockTable {
 public:
  explicit BlockTable(size_t value_count) : block_of_(value_count, kNone) {}

  void allocate(ValueId id, int64_t bytes) {
    release(id);
    block_of_[id] = static_cast<int64_t>(blocks_.size());
    blocks_.push_back({bytes, 1});
    live_ += bytes;
  }
  void share(ValueId id, ValueId with) {
    release(id);
    block_of_[id] = block_of_[with];
    if (block_of_[id] != kNone) ++blocks_[block_of_[id]].users;
  }
  void release(ValueId id) {
    if (block_of_[id] == kNone) return;
    Block& block = blocks_[block_of_[id]];
    if (--block.users == 0) live_ -= block.bytes;
    block_of_[id] = kNone;
  }
  bool is_shared(ValueId id) const { return block_of_[id] != kNone && blocks_[block_of_[id]].users > 1; }
  int64_t live() const { return live_; }

 private:
  struct Block {
    int64_t bytes, users;
  };
  static constexpr int64_t kNone = -1;
  std::vector<int64_t> block_of_;
  std::vector<Block> blocks_;
  int64_t live_ = 0;
};

class Walk {
 public:
  Walk(const CompiledGraph& compiled, int64_t rows, bool training)
      : compiled_(compiled),
        size_{rows, static_cast<int64_t>(c10::elementSize(compiled.precision))},
        training_(training),
        values_(compiled.graph->values.size()),
        gradients_(compiled.graph->values.size()) {}

  int64_t peak() {
    for (const CompiledStep& step : compiled_.steps) forward(step);
    if (!training_) return peak_;
    for (const ValueId id : compiled_.graph->outputs) gradients_.allocate(id, bytes(id));
    note(0);
    for (auto step = compiled_.steps.rbegin(); step != compiled_.steps.rend(); ++step) backward(*step);
    return peak_;
  }

 private:
  int64_t bytes(ValueId id) const { return value_bytes(compiled_.graph->values[id], size_.rows, size_.element_bytes); }
  void note(int64_t scratch) { peak_ = std::max(peak_, values_.live() + gradients_.live() + saved_ + scratch); }

  void forward(const CompiledStep& step) {
    const Instruction& instruction = *step.instruction;
    for (const ValueId id : step.outputs) {
      if (instruction.shares_memory(training_)) {
        values_.share(id, step.inputs.front());
      } else {
        values_.allocate(id, bytes(id));
      }
    }
    if (training_) saved_ += instruction.saved_bytes(size_);
    note(instruction.scratch_bytes(size_, Pass::kForward));
    if (training_ && !step.has_backward()) saved_ -= instruction.saved_bytes(size_);
    for (const ValueId id : training_ ? step.dropped_after_training_forward : step.dropped_after_evaluation) {
      values_.release(id);
    }
  }

  void backward(const CompiledStep& step) {
    if (step.has_backward()) {
      const Instruction& instruction = *step.instruction;
      int64_t scratch = instruction.scratch_bytes(size_, Pass::kBackward);
      for (const GradientTarget& target : step.targets) scratch += deliver(step, target);
      note(scratch);
      saved_ -= instruction.saved_bytes(size_);
    }
    for (const ValueId id : step.outputs) gradients_.release(id);
    for (const ValueId id : step.dropped_after_backward) values_.release(id);
  }

  /// Books the target's gradient; returns what is needed besides while it is being added.
  int64_t deliver(const CompiledStep& step, const GradientTarget& target) {
    const Instruction& instruction = *step.instruction;
    if (target.bound) return 0;
    if (target.mode == GradientTarget::Mode::kAdd) {
      if (gradients_.is_shared(target.value)) gradients_.allocate(target.value, bytes(target.value));
      return instruction.shares_gradient() || instruction.adds_in_place() ? 0 : bytes(target.value);
    }
    if (instruction.shares_gradient()) {
      gradients_.share(target.value, step.outputs.front());
    } else {
      gradients_.allocate(target.value, bytes(target.value));
    }
    return 0;
  }

  const CompiledGraph& compiled_;
  RunSize size_;
  bool training_;
  BlockTable values_, gradients_;
  int64_t saved_ = 0;
  int64_t peak_ = 0;
};

}  // namespace

int64_t predict_transient_bytes(const CompiledGraph& compiled, int64_t rows, bool training) {
  return Walk(compiled, rows, training).peak();
}

}  // namespace tutti::program
