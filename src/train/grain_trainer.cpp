#include "src/train/grain_trainer.h"

#include <utility>

#include "src/program/loss.h"

namespace tutti::train {

GrainTrainer::GrainTrainer(const ModelSpec& spec, std::shared_ptr<const program::Program> program, ModelMemory& memory,
                           const TrainingSource& source, int64_t slot_count)
    : spec_(spec),
      program_(std::move(program)),
      memory_(memory),
      source_(source),
      dropout_key_(data::RandomKey::of(spec.seed, "dropout")) {
  const graph::Graph& graph = program_->graph();
  for (int64_t slot = 0; slot < slot_count; ++slot) {
    program::Frame frame = program_->make_frame();
    for (size_t p = 0; p < graph.parameters.size(); ++p) {
      frame.values[static_cast<size_t>(graph.parameters[p].value)] = memory.parameter_views[p];
    }
    frames_.push_back(std::move(frame));
  }
}

void GrainTrainer::bind(program::Frame& frame, int64_t grain, size_t pool_entry) const {
  const graph::Graph& graph = program_->graph();
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!graph.parameters[p].trainable) continue;
    frame.gradients[static_cast<size_t>(graph.parameters[p].value)] = memory_.gradient_views[pool_entry][p];
  }
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    frame.values[static_cast<size_t>(graph.buffers[b].value)] = memory_.grain_buffers[static_cast<size_t>(grain)][b];
  }
}

void GrainTrainer::run(program::Frame& frame, size_t pool_entry, Batch batch, std::vector<double>& scalars) const {
  const graph::Graph& graph = program_->graph();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    frame.values[static_cast<size_t>(graph.inputs[i])] = std::move(batch.inputs[i]);
  }
  memory_.guard_padding(memory_.gradients[pool_entry]);
  program_->forward(frame);
  const auto output = static_cast<size_t>(graph.outputs.front());
  const program::LossSums sums =
      program::evaluate_loss(spec_.loss, frame.values[output], batch.targets, &frame.gradients[output]);
  program_->backward(frame);
  memory_.open_padding(memory_.gradients[pool_entry]);
  scalars[GrainScalars::kLoss] += sums.sum;
  scalars[GrainScalars::kDenominator] += sums.denominator;
}

std::vector<double> GrainTrainer::compute(const StepBatches& batches, int64_t step, int64_t grain, int buffer,
                                          int slot) {
  program::Frame& frame = frames_[static_cast<size_t>(slot)];
  const auto scratch = memory_.gradients.size() - frames_.size() + static_cast<size_t>(slot);
  std::vector<double> scalars(GrainScalars::kCount, 0.0);
  bool written = false;
  try {
    for (int64_t b = batches.first_batch; b < batches.last_batch; ++b) {
      const RowRange rows = source_.grain_rows(b, grain);
      if (rows.count() == 0) continue;
      const size_t pool_entry = written ? scratch : static_cast<size_t>(buffer);
      bind(frame, grain, pool_entry);
      frame.random = {dropout_key_, static_cast<uint32_t>(step), static_cast<uint32_t>(b - batches.first_batch),
                      rows.begin};
      run(frame, pool_entry, source_.gather(batches.epoch, b, grain), scalars);
      if (written) memory_.gradients[static_cast<size_t>(buffer)].add_(memory_.gradients[scratch]);
      written = true;
    }
  } catch (...) {
    program_->clear(frame);
    memory_.open_padding(memory_.gradients[scratch]);
    memory_.open_padding(memory_.gradients[static_cast<size_t>(buffer)]);
    throw;
  }
  program_->clear(frame);
  if (!written) memory_.gradients[static_cast<size_t>(buffer)].zero_();
  return scalars;
}

}  // namespace tutti::train
