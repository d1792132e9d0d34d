// Archive, program, graph, shapes, writes, outputs: one after another.
#include "src/graph/import_pt2.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/graph/batch_size.h"
#include "src/graph/buffer_updates.h"
#include "src/graph/composite_operators.h"
#include "src/graph/constant_folding.h"
#include "src/graph/operator_call.h"
#include "src/graph/output_selection.h"
#include "src/graph/pt2_archive.h"
#include "src/graph/pt2_program.h"
#include "src/graph/pt2_translation.h"
#include "src/graph/shape_probe.h"
#include "src/graph/write_replacement.h"

namespace tutti::graph {
namespace {

/// The values of a graph for one batch size.
struct Probe {
  int64_t rows = 0;
  std::vector<at::Tensor> values;
};

/// The first dimension of inputs is the batch.
void open_inputs(Graph& graph) {
  for (const ValueId id : graph.inputs) graph.values[id].shape.front() = kBatch;
}

std::string maker_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes) {
    if (std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end()) return described(node);
  }
  return graph.values[id].name;
}

/// The size of a dimension, known for two batch sizes, as it stands in a shape; none where it is no multiple of them.
std::optional<int64_t> open_size(int64_t first, int64_t second, const Probe& one, const Probe& other) {
  if (first == second) return first;
  const int64_t per_row = first / one.rows;
  if (per_row * one.rows != first || per_row * other.rows != second) return std::nullopt;
  return per_row * kBatch;
}

/// Describes what nodes make. A dimension that differs between the two probes depends on the batch.
void describe_results(Graph& graph, const Probe& one, const Probe& other) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    Value& value = graph.values[i];
    const at::Tensor &first = one.values[i], &second = other.values[i];
    if (!value.is_computed() || !first.defined()) continue;
    value.type = first.scalar_type();
    if (value.kind == ValueKind::kNumber) continue;
    for (int64_t d = 0; d < first.dim(); ++d) {
      const std::optional<int64_t> size =
          first.dim() != second.dim() ? std::nullopt : open_size(first.size(d), second.size(d), one, other);
      if (!size) {
        throw GraphError(
            fmt::format("{}: its result has the sizes [{}] for a batch of {} and [{}] for one of {}, "
                        "expected each to be fixed or a multiple of the batch. Write the model so that "
                        "every row is computed alike.",
                        maker_of(graph, static_cast<ValueId>(i)), fmt::join(first.sizes(), ", "), one.rows,
                        fmt::join(second.sizes(), ", "), other.rows));
      }
      value.shape.push_back(*size);
    }
  }
}

/// Describes what nodes make for the only batch size: what depends on an input and has as many rows is a batch.
void describe_fixed_results(Graph& graph, const Probe& probe) {
  std::vector<bool> depends(graph.values.size());
  for (const ValueId id : graph.inputs) depends[id] = true;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for (const Argument& argument : node.arguments) {
      for (const ValueId id : argument.ids) any = any || (id != kNoValue && depends[id]);
    }
    for (const ValueId id : node.outputs) {
      if (id == kNoValue || !probe.values[id].defined()) continue;
      depends[id] = any;
      Value& value = graph.values[id];
      value.type = probe.values[id].scalar_type();
      if (value.kind == ValueKind::kNumber) continue;
      value.shape = probe.values[id].sizes().vec();
      if (any && !value.shape.empty() && value.shape.front() == probe.rows) value.shape.front() = kBatch;
    }
  }
}

/// Two batch sizes that the graph runs with.
std::pair<Probe, Probe> probe_twice(const Graph& graph, const Pt2Batch& batch) {
  std::vector<Probe> probes;
  std::optional<GraphError> first_error;
  for (const int64_t rows : batch.sizes) {
    try {
      probes.push_back({rows, probe_shapes(graph, rows)});
    } catch (const GraphError& error) {
      if (!first_error) first_error = error;
    }
    if (probes.size() == 2) return {std::move(probes[0]), std::move(probes[1])};
  }
  if (first_error) throw *first_error;
  throw GraphError(
      fmt::format("the archive's dynamic batch allows for the sizes [{}] only, expected two at least. "
                  "Export the model with a wider range, or with a fixed batch.",
                  fmt::join(batch.sizes, ", ")));
}

void give_shapes(Graph& graph, const Pt2Batch& batch) {
  if (batch.is_fixed) {
    Probe probe{batch.sizes.front(), probe_shapes(graph, batch.sizes.front())};
    describe_fixed_results(graph, probe);
    graph.fixed_batch = probe.rows;
    open_inputs(graph);
    fold_constants(graph, probe.values);
    replace_writes(graph, std::move(probe.values));
    return;
  }
  open_inputs(graph);
  auto [one, other] = probe_twice(graph, batch);
  describe_results(graph, one, other);
  fold_constants(graph, one.values);
  replace_writes(graph, std::move(one.values));
}

/// A tensor made from nothing with PyTorch's default type follows the program's precision.
void write_out_default_types(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (NumberFunction::find(node.target) != nullptr || node.outputs.size() != 1) continue;
    const std::optional<int> position = find_operator(node).schema().argumentIndexWithName("dtype");
    const ValueId made = node.outputs.front();
    if (!position || made == kNoValue || graph.values[made].type != at::kFloat) continue;
    const bool reads_tensors = std::any_of(node.arguments.begin(), node.arguments.end(), [&](const Argument& argument) {
      return std::any_of(argument.ids.begin(), argument.ids.end(),
                         [&](ValueId id) { return id != kNoValue && graph.values[id].kind != ValueKind::kNumber; });
    });
    Argument& type = node.arguments[*position];
    if (!reads_tensors && type.constant.isNone()) type = Argument::fixed(static_cast<int64_t>(at::kFloat));
  }
}

void choose_outputs(ImportedModel& model) {
  std::vector<ValueId> outputs;
  for (const ValueId id : model.graph.outputs) {
    const Value& value = model.graph.values[id];
    const bool has_rows = !value.shape.empty() && value.shape.front() == kBatch;
    if (has_rows && at::isFloatingType(value.type)) {
      outputs.push_back(id);
    } else {
      model.left_out.push_back(value.name);
    }
  }
  if (outputs.empty()) {
    throw GraphError(
        fmt::format("none of the results [{}] is a tensor of real numbers whose first dimension is the "
                    "batch. Export a model that returns one, without its loss.",
                    fmt::join(model.left_out, ", ")));
  }
  select_outputs(model.graph, std::move(outputs));
}

}  // namespace

ImportedModel import_pt2(const std::filesystem::path& file) {
  Pt2Archive archive(file);
  try {
    const Pt2Program program = read_pt2_program(archive.program());
    const Pt2Batch batch = batch_of(program);
    ImportedModel model{translate_pt2(program, archive.weights(), archive.constants()), {}};
    restore_buffer_updates(model.graph);
    restore_composites(model.graph);
    give_shapes(model.graph, batch);
    write_out_default_types(model.graph);
    choose_outputs(model);
    return model;
  } catch (const GraphError& error) {
    const std::string fault = error.what();
    if (fault.starts_with(file.string())) throw;
    throw GraphError(fmt::format("{}: {}", file.string(), fault));
  }
}

}  // namespace tutti::graph
