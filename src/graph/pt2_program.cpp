// JSON to structs, key by key.
#include "src/graph/pt2_program.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "src/graph/bounded_json.h"
#include "src/graph/graph.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSchemaMajor = 8;

Pt2Graph read_graph(const Json& graph);

/// The only key of a union and its value.
std::pair<std::string, const Json*> only_member(const Json& choice) {
  if (!choice.is_object() || choice.size() != 1) throw GraphError("expected an object with one key");
  return {choice.begin().key(), &choice.begin().value()};
}

Pt2Number read_number(const Json& choice) {
  const auto [kind, value] = only_member(choice);
  if (kind == "as_name") return Pt2Symbol{value->get<std::string>()};
  if (kind == "as_int") return integer_of(*value);
  if (kind == "as_float") return real_of(*value);
  if (kind == "as_bool") return value->get<bool>();
  throw GraphError(fmt::format("expected a number or its name, found '{}'", kind));
}

template <typename Read>
Pt2Numbers read_list(const Json& list, Read read) {
  Pt2Numbers numbers;
  for (const Json& element : list) numbers.numbers.push_back(read(element));
  return numbers;
}

std::optional<std::string> read_optional_tensor(const Json& choice) {
  const auto [kind, value] = only_member(choice);
  if (kind == "as_none") return std::nullopt;
  if (kind == "as_tensor") return value->at("name").get<std::string>();
  throw GraphError(fmt::format("expected a tensor or none, found '{}'", kind));
}

Pt2Tensors read_tensors(const Json& list) {
  Pt2Tensors tensors;
  for (const Json& element : list) tensors.names.emplace_back(element.at("name").get<std::string>());
  return tensors;
}

Pt2Tensors read_optional_tensors(const Json& list) {
  Pt2Tensors tensors;
  for (const Json& element : list) tensors.names.push_back(read_optional_tensor(element));
  return tensors;
}

Pt2Argument read_argument(const Json& choice) {
  const auto [kind, value] = only_member(choice);
  if (kind == "as_none") return {};
  if (kind == "as_tensor") return Pt2Tensor{value->at("name").get<std::string>()};
  if (kind == "as_tensors") return read_tensors(*value);
  if (kind == "as_optional_tensors") return read_optional_tensors(*value);
  if (kind == "as_optional_tensor") {
    const std::optional<std::string> name = read_optional_tensor(*value);
    return name ? Pt2Argument(Pt2Tensor{*name}) : Pt2Argument();
  }
  if (kind == "as_int") return Pt2Number(integer_of(*value));
  if (kind == "as_float") return Pt2Number(real_of(*value));
  if (kind == "as_bool") return Pt2Number(value->get<bool>());
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return read_number(*value);
  if (kind == "as_ints") return read_list(*value, integer_of);
  if (kind == "as_floats") return read_list(*value, real_of);
  if (kind == "as_bools") return read_list(*value, [](const Json& element) { return element.get<bool>(); });
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") return read_list(*value, read_number);
  if (kind == "as_string") return value->get<std::string>();
  if (kind == "as_scalar_type") return scalar_type_of(integer_of(*value));
  if (kind == "as_memory_format") return memory_format_of(integer_of(*value));
  if (kind == "as_layout") return layout_of(integer_of(*value));
  if (kind == "as_device") return Pt2Device{value->at("type").get<std::string>()};
  if (kind == "as_graph") return std::make_shared<const Pt2Graph>(read_graph(value->at("graph")));
  throw GraphError(fmt::format("arguments of kind '{}' are not known", kind.substr(0, 80)));
}

/// The path of the innermost module: the stack reads "KEY,PATH,CLASS;KEY,PATH,CLASS".
std::string module_path_of(const Json& node) {
  const auto metadata = node.find("metadata");
  if (metadata == node.end() || !metadata->is_object()) return {};
  const auto stack = metadata->find("nn_module_stack");
  if (stack == metadata->end() || !stack->is_string()) return {};
  const auto& text = stack->get_ref<const std::string&>();
  const size_t last = text.rfind(';') + 1;  // 0 where there is none
  const size_t begin = text.find(',', last);
  const size_t end = begin == std::string::npos ? begin : text.find(',', begin + 1);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

void read_node(const Json& json, Pt2Node& node) {
  node.target = json.at("target").get<std::string>();
  const auto name = json.find("name");
  if (name != json.end() && name->is_string()) node.name = name->get<std::string>();
  node.module_path = module_path_of(json);
  for (const Json& input : json.at("inputs")) {
    const std::string& argument = input.at("name").get_ref<const std::string&>();
    try {
      node.inputs.push_back({argument, read_argument(input.at("arg"))});
    } catch (const GraphError& error) {
      throw GraphError(fmt::format("argument '{}': {}", argument, error.what()));
    }
  }
  for (const Json& output : json.at("outputs")) node.outputs.push_back(read_argument(output));
}

Pt2Graph read_graph(const Json& json) {
  Pt2Graph graph;
  for (const Json& input : json.at("inputs")) graph.inputs.push_back(read_argument(input));
  for (const Json& output : json.at("outputs")) graph.outputs.push_back(read_argument(output));
  const Json& metas = json.at("tensor_values");
  for (const Pt2Argument& input : graph.inputs) {
    const auto* tensor = std::get_if<Pt2Tensor>(&input);
    if (tensor != nullptr) graph.input_metas.emplace(tensor->name, tensor_meta_of(metas.at(tensor->name)));
  }
  for (const Json& node : json.at("nodes")) {
    Pt2Node& added = graph.nodes.emplace_back();
    try {
      read_node(node, added);
    } catch (const std::exception& error) {
      throw GraphError(fmt::format("node {} '{}' ({}): {}. Export the model with PyTorch 2.11, or replace the layer.",
                                   graph.nodes.size() - 1, added.name, added.target, error.what()));
    }
  }
  return graph;
}

Pt2Input read_input(const Json& choice) {
  using Kind = Pt2Input::Kind;
  const auto [kind, value] = only_member(choice);
  if (kind == "parameter") return {Kind::kParameter, value->at("parameter_name").get<std::string>()};
  if (kind == "buffer") {
    return {Kind::kBuffer, value->at("buffer_name").get<std::string>(), value->at("persistent").get<bool>()};
  }
  if (kind == "tensor_constant") return {Kind::kTensorConstant, value->at("tensor_constant_name").get<std::string>()};
  if (kind == "user_input") return {Kind::kUserInput, ""};
  if (kind == "constant_input") return {Kind::kConstantInput, value->at("name").get<std::string>()};
  throw GraphError(
      fmt::format("graph inputs of kind '{}' (custom objects, tokens) are not read. Remove them from the "
                  "model before it is exported.",
                  kind.substr(0, 80)));
}

Pt2Output read_output(const Json& choice) {
  using Kind = Pt2Output::Kind;
  const auto [kind, value] = only_member(choice);
  if (kind == "user_output" || kind == "loss_output") return {Kind::kUserOutput, ""};
  if (kind == "buffer_mutation") return {Kind::kBufferMutation, value->at("buffer_name").get<std::string>()};
  if (kind == "user_input_mutation") return {Kind::kUserInputMutation, value->at("user_input_name").get<std::string>()};
  throw GraphError(
      fmt::format("graph outputs of kind '{}' are not read. Export the forward pass alone.", kind.substr(0, 80)));
}

std::optional<int64_t> read_bound(const Json& range, const char* key) {
  const auto bound = range.find(key);
  return bound == range.end() || bound->is_null() ? std::nullopt : std::optional(integer_of(*bound));
}

void check_version(const Json& program) {
  const Json& version = program.at("schema_version");
  const int64_t major = integer_of(version.at("major"));
  if (major != kSchemaMajor) {
    throw GraphError(
        fmt::format("expected an archive of schema version {}.x, found {}.{}. Export the model with "
                    "PyTorch 2.9 to 2.11.",
                    kSchemaMajor, major, integer_of(version.at("minor"))));
  }
}

Pt2Program read_program(const Json& json) {
  check_version(json);
  Pt2Program program;
  const Json& module = json.at("graph_module");
  program.graph = read_graph(module.at("graph"));
  for (const Json& spec : module.at("signature").at("input_specs")) program.inputs.push_back(read_input(spec));
  for (const Json& spec : module.at("signature").at("output_specs")) program.outputs.push_back(read_output(spec));
  if (program.inputs.size() != program.graph.inputs.size() || program.outputs.size() != program.graph.outputs.size()) {
    throw GraphError(fmt::format("the signature has {} inputs and {} outputs, the graph {} and {}",
                                 program.inputs.size(), program.outputs.size(), program.graph.inputs.size(),
                                 program.graph.outputs.size()));
  }
  for (const auto& [symbol, range] : json.at("range_constraints").items()) {
    program.ranges.emplace(symbol, Pt2Range{read_bound(range, "min_val"), read_bound(range, "max_val")});
  }
  return program;
}

}  // namespace

Pt2Program read_pt2_program(const Json& program) {
  try {
    return read_program(program);
  } catch (const Json::exception& error) {
    throw GraphError(fmt::format("the program does not follow torch.export's schema: {}", error.what()));
  }
}

}  // namespace tutti::graph
