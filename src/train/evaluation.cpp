#include "src/train/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/program/loss.h"
#include "src/program/metric.h"

namespace tutti::train {

program::Frame evaluation_frame(const program::Program& program, const ModelMemory& memory) {
  const graph::Graph& graph = program.graph();
  program::Frame frame = program.make_frame();
  frame.training = false;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    frame.values[static_cast<size_t>(graph.parameters[p].value)] = memory.parameter_views[p];
  }
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    frame.values[static_cast<size_t>(graph.buffers[b].value)] = memory.averaged_buffers[b];
  }
  return frame;
}

Evaluation::Evaluation(const ModelSpec& spec, std::shared_ptr<const program::Program> program,
                       const ModelMemory& memory, int64_t slot_count)
    : spec_(spec), program_(std::move(program)) {
  if (spec.data.validation) parts_.push_back({"validation", {spec, EvaluationSource::Kind::kValidation}});
  if (spec.data.test) parts_.push_back({"test", {spec, EvaluationSource::Kind::kTest}});
  const graph::Graph& graph = program_->graph();
  const auto& output = graph.values[static_cast<size_t>(graph.outputs.front())].shape;
  class_count_ = output.size() > 1 ? output[1] : 1;
  for (int64_t slot = 0; slot < slot_count; ++slot) frames_.push_back(evaluation_frame(*program_, memory));
}

int64_t Evaluation::statistics_per_part() const {
  int64_t count = 2;  // loss sum, denominator
  for (const program::Metric metric : spec_.metrics) count += program::statistics_count(metric, class_count_);
  return count;
}

std::vector<double> Evaluation::compute(int64_t grain, int slot) {
  program::Frame& frame = frames_[static_cast<size_t>(slot)];
  const auto per_part = static_cast<size_t>(statistics_per_part());
  std::vector<double> statistics(per_part * parts_.size(), 0.0);
  for (size_t p = 0; p < parts_.size(); ++p) {
    const RowRange rows = slice(parts_[p].source.row_count(), grain, spec_.grains);
    evaluate(parts_[p], rows, frame, std::span(statistics).subspan(p * per_part, per_part));
  }
  return statistics;
}

void Evaluation::try_first_batches(int slot) {
  std::vector<double> statistics(static_cast<size_t>(statistics_per_part()));
  for (const Part& part : parts_) {
    const int64_t rows = std::min(part.source.row_count(), spec_.evaluation_batch);
    evaluate(part, {0, rows}, frames_[static_cast<size_t>(slot)], statistics);
  }
}

void Evaluation::evaluate(const Part& part, RowRange range, program::Frame& frame, std::span<double> statistics) const {
  const graph::Graph& graph = program_->graph();
  const auto output = static_cast<size_t>(graph.outputs.front());
  try {
    for (int64_t begin = range.begin; begin < range.end; begin += spec_.evaluation_batch) {
      Batch batch = part.source.gather({begin, std::min(begin + spec_.evaluation_batch, range.end)});
      for (size_t i = 0; i < graph.inputs.size(); ++i) {
        frame.values[static_cast<size_t>(graph.inputs[i])] = std::move(batch.inputs[i]);
      }
      program_->forward(frame);
      const at::Tensor& outputs = frame.values[output];
      const program::LossSums sums = program::evaluate_loss(spec_.loss, outputs, batch.targets, nullptr);
      statistics[0] += sums.sum;
      statistics[1] += sums.denominator;
      size_t at = 2;
      for (const program::Metric metric : spec_.metrics) {
        const auto count = static_cast<size_t>(program::statistics_count(metric, class_count_));
        program::accumulate(metric, outputs, batch.targets, spec_.loss.ignore_index, statistics.subspan(at, count));
        at += count;
      }
      program_->clear(frame);
    }
  } catch (...) {
    program_->clear(frame);
    throw;
  }
}

nlohmann::json Evaluation::results(std::span<const double> statistics) const {
  nlohmann::json results = nlohmann::json::object();
  size_t at = 0;
  for (const Part& part : parts_) {
    nlohmann::json& result = results[part.name];
    result["loss"] = statistics[at] / statistics[at + 1];
    at += 2;
    for (const program::Metric metric : spec_.metrics) {
      const auto count = static_cast<size_t>(program::statistics_count(metric, class_count_));
      result[program::name_of(metric)] = program::finish(metric, statistics.subspan(at, count));
      at += count;
    }
  }
  return results;
}

double Evaluation::deciding_value(const nlohmann::json& results, const std::string& metric) {
  for (const char* part : {"validation", "test"}) {
    if (!results.contains(part)) continue;
    const auto found = results[part].find(metric);
    if (found != results[part].end() && found->is_number()) return found->get<double>();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tutti::train
