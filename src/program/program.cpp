// A program: runs the compiled steps on a frame.
#include "src/program/program.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/program/autograd_island.h"
#include "src/program/compiler.h"
#include "src/program/memory_prediction.h"

namespace tutti::program {
namespace {

/// Grad mode off; where no island needs autograd, calls go straight to the kernels.
class KernelScope {
 public:
  explicit KernelScope(bool has_island) {
    if (!has_island) below_autograd_.emplace();
  }

 private:
  at::NoGradGuard no_grad_;
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd_;
};

void drop(std::vector<at::Tensor>& tensors, const std::vector<graph::ValueId>& ids) {
  for (const graph::ValueId id : ids) tensors[id].reset();
}

void drop_saved(Frame& frame, const CompiledStep& step) {
  for (int64_t slot = step.first_slot; slot < step.end_slot; ++slot) frame.saved[slot].reset();
}

[[noreturn]] void rethrow_with_place(const CompiledStep& step, const c10::Error& error) {
  throw std::runtime_error(fmt::format("{}: {}", step.description, error.what_without_backtrace()));
}

}  // namespace

struct Program::Compiled {
  CompiledGraph graph;
};

Program::Program(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Program::~Program() = default;

std::shared_ptr<const Program> Program::compile(std::shared_ptr<const graph::Graph> graph,
                                                const CompileOptions& options) {
  return std::shared_ptr<const Program>(
      new Program(std::make_unique<Compiled>(Compiled{compile_graph(std::move(graph), options)})));
}

const graph::Graph& Program::graph() const { return *compiled_->graph.graph; }
at::ScalarType Program::precision() const { return compiled_->graph.precision; }

std::vector<const Instruction*> Program::instructions() const {
  std::vector<const Instruction*> list;
  for (const CompiledStep& step : compiled_->graph.steps) list.push_back(step.instruction.get());
  return list;
}

Frame Program::make_frame() const {
  const CompiledGraph& compiled = compiled_->graph;
  Frame frame;
  frame.values.resize(graph().values.size());
  frame.gradients.resize(graph().values.size());
  frame.saved.resize(compiled.slot_count);
  for (size_t i = 0; i < compiled.constants.size(); ++i) {
    frame.values[graph().constants[i].value] = compiled.constants[i];
  }
  return frame;
}

void Program::forward(Frame& frame) const {
  const KernelScope scope(compiled_->graph.has_island);
  for (const CompiledStep& step : compiled_->graph.steps) {
    try {
      step.instruction->forward(frame);
    } catch (const c10::Error& error) {
      rethrow_with_place(step, error);
    }
    if (frame.training) {
      drop(frame.values, step.dropped_after_training_forward);
      if (!step.has_backward()) drop_saved(frame, step);
    } else {
      drop(frame.values, step.dropped_after_evaluation);
    }
  }
}

void Program::backward(Frame& frame) const {
  const CompiledGraph& compiled = compiled_->graph;
  const KernelScope scope(compiled.has_island);
  for (const graph::ValueId id : compiled.untouched_parameters) frame.gradients[id].zero_();
  for (auto step = compiled.steps.rbegin(); step != compiled.steps.rend(); ++step) {
    if (step->has_backward()) {
      try {
        step->instruction->backward(frame);
      } catch (const c10::Error& error) {
        rethrow_with_place(*step, error);
      }
      drop_saved(frame, *step);
    }
    drop(frame.gradients, step->outputs);
    drop(frame.values, step->dropped_after_backward);
  }
  drop(frame.values, graph().outputs);
}

void Program::clear(Frame& frame) const {
  drop(frame.values, graph().inputs);
  drop(frame.values, compiled_->graph.results);
  drop(frame.gradients, compiled_->graph.results);
  for (at::Tensor& tensor : frame.saved) tensor.reset();
}

int64_t Program::transient_bytes(int64_t rows, bool training) const {
  return predict_transient_bytes(compiled_->graph, rows, training);
}

std::vector<std::string> Program::islands() const {
  std::vector<std::string> names;
  for (const CompiledStep& step : compiled_->graph.steps) {
    if (!step.instruction->is_island()) continue;
    for (std::string& name : static_cast<const AutogradIsland&>(*step.instruction).operators()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace tutti::program
