#include "launch/job_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "src/graph/import_pt2.h"
#include "src/graph/output_selection.h"

namespace tutti::launch {
namespace {

const graph::Value& value_of(const graph::Graph& graph, graph::ValueId id) {
  return graph.values.at(static_cast<size_t>(id));
}

std::string names_of(const graph::Graph& graph, const std::vector<graph::ValueId>& ids) {
  std::vector<std::string> names;
  for (const graph::ValueId id : ids) names.push_back(value_of(graph, id).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<size_t> position_of(const graph::Graph& graph, const std::string& output) {
  const auto named =
      std::ranges::find_if(graph.outputs, [&](graph::ValueId id) { return value_of(graph, id).name == output; });
  if (named != graph.outputs.end()) return static_cast<size_t>(named - graph.outputs.begin());
  size_t position = 0;
  const char* end = output.data() + output.size();
  const auto [read, error] = std::from_chars(output.data(), end, position);
  if (error != std::errc{} || read != end || position >= graph.outputs.size()) return std::nullopt;
  return position;
}

graph::ValueId chosen_output(const graph::Graph& graph, const std::string& output) {
  if (output.empty() && graph.outputs.size() == 1) return graph.outputs.front();
  const auto position = position_of(graph, output);
  if (position) return graph.outputs[*position];
  throw graph::GraphError(fmt::format("output: expected one of the graph's outputs, {} (or 0 to {}), found {}",
                                      names_of(graph, graph.outputs), graph.outputs.size() - 1,
                                      output.empty() ? "none" : output));
}

const data::Field* field_named(const std::vector<data::Field>& fields, const std::string& name) {
  const auto field = std::ranges::find(fields, name, &data::Field::name);
  return field == fields.end() ? nullptr : &*field;
}

void check_field(const graph::Value& input, const data::Field& field) {
  const bool is_index = input.type == at::kLong;
  if (!is_index && input.type != at::kFloat) {
    throw graph::GraphError(
        fmt::format("input `{}`: expected float32 or int64, found {}; export the model with inputs "
                    "of one of these types",
                    input.name, c10::toString(input.type)));
  }
  if (is_index && !data::is_integer(field.type)) {
    throw graph::GraphError(fmt::format("input `{}`: expected a field of whole numbers, found {} in `{}`", input.name,
                                        data::name_of(field.type), field.name));
  }
  const std::vector<int64_t> row(input.shape.begin() + 1, input.shape.end());
  if (row != field.shape) {
    throw graph::GraphError(fmt::format("input `{}`: expected a field with rows of shape [{}], found [{}] in `{}`",
                                        input.name, fmt::join(row, ", "), fmt::join(field.shape, ", "), field.name));
  }
}

}  // namespace

graph::Graph read_exported_graph(const std::filesystem::path& file, const std::string& output) {
  graph::ImportedModel model = graph::import_pt2(file);
  if (model.graph.outputs.empty()) {
    throw graph::GraphError(
        fmt::format("{}: expected an output whose first dimension is the batch, found {}", file.string(),
                    model.left_out.empty() ? "no output" : fmt::format("only {}", fmt::join(model.left_out, ", "))));
  }
  graph::select_outputs(model.graph, {chosen_output(model.graph, output)});
  return std::move(model.graph);
}

std::vector<std::string> fields_of_inputs(const graph::Graph& graph, const std::vector<std::string>& named,
                                          const std::vector<data::Field>& fields) {
  if (!named.empty() && named.size() != graph.inputs.size()) {
    throw graph::GraphError(fmt::format("inputs: expected a field for each of the graph's {} inputs ({}), found {}",
                                        graph.inputs.size(), names_of(graph, graph.inputs), named.size()));
  }
  const bool take_only_field = named.empty() && graph.inputs.size() == 1 && fields.size() == 1;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::Value& input = value_of(graph, graph.inputs[i]);
    const std::string& name = take_only_field ? fields.front().name : named.empty() ? input.name : named[i];
    const data::Field* field = field_named(fields, name);
    if (field == nullptr) {
      std::vector<std::string> known;
      for (const data::Field& each : fields) known.push_back(each.name);
      throw graph::GraphError(
          fmt::format("input `{}`: expected a field `{}` in the data set, found {}; name the fields "
                      "with the key `inputs`, in the order {}",
                      input.name, name, fmt::join(known, ", "), names_of(graph, graph.inputs)));
    }
    chosen.push_back(name);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    check_field(value_of(graph, graph.inputs[i]), *field_named(fields, chosen[i]));
  }
  return chosen;
}

}  // namespace tutti::launch
