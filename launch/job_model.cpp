// One model block, substituted, into a model's specification.
#include "launch/job_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "data/file_kind.h"
#include "launch/job_checks.h"
#include "launch/job_graph.h"
#include "launch/job_methods.h"
#include "launch/job_source.h"
#include "src/train/safetensors_file.h"

namespace tutti::launch {
namespace {

const data::Field* field_named(const std::vector<data::Field>& fields, const std::string& name) {
  const auto field = std::ranges::find(fields, name, &data::Field::name);
  return field == fields.end() ? nullptr : &*field;
}

/// The name of the field that `key` chooses: the only one, where the key is absent. Empty at a fault.
std::string choose_field(const KeyReader& reader, std::string_view key, const std::vector<data::Field>& fields) {
  std::vector<std::string> names;
  for (const data::Field& field : fields) names.push_back(field.name);
  std::string name = reader.text(key);
  if (field_named(fields, name) != nullptr) return name;
  if (name.empty() && fields.size() == 1) return names.front();
  if (name.empty()) {
    reader.fault(key,
                 fmt::format("missing: the data set has {} of them; {}", fields.size(), expected_one_of("", names)));
  } else {
    reader.fault(key, fmt::format("no field `{}` in the data set; {}", name, expected_one_of(name, names)));
  }
  return "";
}

/// A zoo entry as a list of one layer. `classes`, where it is not given, is the target's class count.
Node zoo_layers(const Node& zoo, int64_t class_count) {
  Node entry = zoo;
  entry.key.clear();
  if (entry.kind == Node::Kind::kScalar && class_count > 0) {
    entry.kind = Node::Kind::kMap;
    entry.put(zoo.text, zoo.place, Node::map(zoo.place));
  }
  const bool has_keys = entry.children.size() == 1 && entry.children.front().kind == Node::Kind::kMap;
  if (has_keys && class_count > 0 && entry.children.front().find("classes") == nullptr) {
    entry.children.front().put("classes", zoo.place, Node::scalar(std::to_string(class_count), zoo.place));
  }
  Node list;
  list.kind = Node::Kind::kList;
  list.place = zoo.place;
  list.children = {std::move(entry)};
  return list;
}

/// The names in a safetensors file; none where it cannot be read, which the models that need it will tell.
std::vector<std::string> tensor_names(const std::string& file) {
  std::vector<std::string> names;
  try {
    const train::SafetensorsFile opened(file);
    for (const train::StoredTensor& tensor : opened.tensors()) names.push_back(tensor.name);
  } catch (const train::SafetensorsError&) {
  }
  return names;
}

/// True where the network begins with an embedding, which takes indices.
bool takes_indices(const Node& layers) {
  if (layers.kind != Node::Kind::kList || layers.children.empty()) return false;
  const Node& first = layers.children.front();
  return first.text == "embedding" || first.find("embedding") != nullptr;
}

/// The place of the layer that a LayerError's path leads to, or of the deepest part of it that is written.
Place layer_place(const Node& layers, std::string_view path) {
  const Node* node = &layers;
  while (!path.empty()) {
    const std::string_view head = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), head.size() + 1));
    size_t index = 0;
    const bool is_index = std::from_chars(head.data(), head.data() + head.size(), index).ec == std::errc{};
    const Node* next = node->find(head);
    if (node->kind == Node::Kind::kList && is_index && index < node->children.size()) next = &node->children[index];
    if (next == nullptr) break;
    node = next;
  }
  return node->key.empty() ? node->place : node->key_place;
}

}  // namespace

ModelReader::ModelReader(Context context, Faults& faults, ModelWarnings& warnings)
    : context_(std::move(context)), faults_(faults), warnings_(warnings) {}

train::ModelSpec ModelReader::read(const Node& variant, const std::string& path) {
  const KeyReader reader(model_block(), variant, path, faults_);
  train::ModelSpec spec;
  spec.name = reader.text("name");
  read_training(reader, spec);
  read_methods(reader, spec);
  read_data(reader, spec);
  read_init(reader, spec);
  read_early_stopping(reader, spec);
  read_checkpoint(reader, spec);
  const Node* node = network_node(reader);
  const Network* network = node == nullptr ? nullptr : read_network(reader, *node, spec);
  if (network != nullptr) {
    spec.graph = network->graph;
    spec.python = network->python;
  }
  check_model(reader, spec, warnings_);
  if (!spec.init_file.empty() && spec.graph) warn_of_unused_weights(reader, spec);
  if (faults_.added() == 0) spec.source = source_of(reader, spec, network->source, context_.reduction, faults_);
  return spec;
}

void ModelReader::read_training(const KeyReader& reader, train::ModelSpec& spec) const {
  using Kind = data::SampleOrder::Kind;
  spec.seed = static_cast<uint64_t>(reader.integer("seed"));
  spec.batch = reader.integer("batch");
  spec.grains = reader.integer("grains");
  spec.accumulate = reader.integer("accumulate");
  spec.epochs = reader.integer("epochs");
  spec.max_steps = reader.optional_integer("steps");
  spec.drop_last = reader.boolean("drop_last");
  spec.order = reader.text("order") == "sequential" ? Kind::kSequential : Kind::kShuffled;
  spec.evaluate_every = reader.integer("evaluate_every");
  spec.evaluation_batch = reader.integer("evaluation_batch");
  spec.log_every = reader.integer("log_every");
  spec.double_precision = reader.text("precision") == "float64";
  spec.island = reader.text("engine") == "island";
  spec.ranks = reader.integer("ranks");
}

void ModelReader::read_methods(const KeyReader& reader, train::ModelSpec& spec) const {
  if (const Node* loss = reader.node("loss")) spec.loss = read_loss(*loss, reader.path_of("loss"), faults_);
  spec.metrics = read_metrics(reader);
  if (const Node* optimizer = reader.node("optimizer")) {
    spec.optimizer = read_optimizer(*optimizer, reader.path_of("optimizer"), faults_);
  }
  if (const Node* schedule = reader.node("schedule")) {
    spec.schedule = read_schedule(*schedule, reader.path_of("schedule"), faults_);
  }
  spec.clip = read_clip(reader, faults_);
  spec.parameter_rules = read_parameter_rules(reader, faults_);
}

void ModelReader::read_data(const KeyReader& reader, train::ModelSpec& spec) const {
  const JobData& sets = context_.data;
  if (sets.empty()) return;
  const std::string name = reader.text("data");
  auto set = sets.find(name);
  if (name.empty() && sets.size() == 1) set = sets.begin();
  if (set == sets.end()) {
    std::vector<std::string> known;
    for (const auto& [set_name, data] : sets) known.push_back(set_name);
    reader.fault("data",
                 fmt::format("{}; {}", name.empty() ? "missing name of a data set" : "no data set `" + name + "`",
                             expected_one_of(name, known)));
    return;
  }
  spec.data = set->second;
  if (!spec.data.train) return;
  spec.data.target = choose_field(reader, "target", spec.data.train->targets());
}

void ModelReader::read_init(const KeyReader& reader, train::ModelSpec& spec) const {
  const std::string file = reader.text("init");
  if (file.empty()) return;
  const std::filesystem::path path = context_.folder / file;
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    spec.init_file = path.string();
  } else {
    const std::string other = data::other_than_regular_file(path);
    reader.fault("init", fmt::format("expected a safetensors file, found {} at {}", other.empty() ? "none" : other,
                                     path.string()));
  }
}

void ModelReader::warn_of_unused_weights(const KeyReader& reader, const train::ModelSpec& spec) {
  const auto [names, is_new] = init_names_.try_emplace(spec.init_file);
  if (is_new) names->second = tensor_names(spec.init_file);
  std::vector<std::string> unused = names->second;
  std::erase_if(unused, [&](const std::string& name) {
    return std::ranges::find(spec.graph->parameters, name, &graph::Parameter::name) != spec.graph->parameters.end() ||
           std::ranges::find(spec.graph->buffers, name, &graph::Buffer::name) != spec.graph->buffers.end();
  });
  if (unused.empty()) return;
  warnings_.add(reader, "init",
                fmt::format("{}: the model has no {}; {} of the file's {} tensors are not used", spec.init_file,
                            fmt::join(unused, ", "), unused.size(), names->second.size()),
                spec.name);
}

void ModelReader::read_early_stopping(const KeyReader& reader, train::ModelSpec& spec) const {
  const Node* node = reader.node("early_stopping");
  if (node == nullptr) return;
  const KeyReader keys(early_stopping_block(), *node, reader.path_of("early_stopping"), faults_);
  spec.early_stopping = {keys.text("metric"), keys.integer("patience"), keys.number("min_delta")};
}

void ModelReader::read_checkpoint(const KeyReader& reader, train::ModelSpec& spec) const {
  static const Node absent;
  const Node* node = reader.node("checkpoint");
  const KeyReader keys(checkpoint_block(), node != nullptr ? *node : absent, reader.path_of("checkpoint"), faults_);
  spec.checkpoint = {keys.integer("every_steps"), keys.integer("every_epochs"), keys.number("every_minutes"),
                     keys.integer("keep"), keys.text("best")};
}

/// Of the keys that give a network, the one written in the model's own block, else in `defaults`.
const Node* ModelReader::network_node(const KeyReader& reader) const {
  std::vector<const Node*> written;
  for (const char* key : {"layers", "zoo", "graph"}) {
    if (const Node* node = reader.node(key)) written.push_back(node);
  }
  const bool has_own = std::ranges::any_of(written, [](const Node* node) { return !node->inherited; });
  if (has_own) std::erase_if(written, [](const Node* node) { return node->inherited; });
  if (written.size() == 1) return written.front();
  reader.fault(
      written.empty() ? "layers" : written.back()->key,
      fmt::format("expected one of `layers`, `zoo` and `graph`, found {}", written.empty() ? "none" : "several"));
  return nullptr;
}

const Network* ModelReader::read_network(const KeyReader& reader, const Node& node, train::ModelSpec& spec) {
  if (node.key == "graph") return read_graph(reader, spec);
  for (const char* key : {"inputs", "output"}) {
    if (reader.has(key)) reader.fault(key, "goes with `graph` alone; layers take one `input` and give one output");
  }
  if (node.key == "layers" && (node.kind != Node::Kind::kList || node.children.empty())) {
    const bool is_list = node.kind == Node::Kind::kList;
    reader.fault("layers",
                 fmt::format("expected a list of layers, found {}", is_list ? "an empty one" : describe(node)));
    return nullptr;
  }
  if (!spec.data.train) return nullptr;
  spec.data.inputs = {choose_field(reader, "input", spec.data.train->inputs())};
  const data::Field* input = field_named(spec.data.train->inputs(), spec.data.inputs.front());
  const data::Field* target = field_named(spec.data.train->targets(), spec.data.target);
  if (input == nullptr || target == nullptr) return nullptr;
  const Node list = node.key == "zoo" ? zoo_layers(node, target->class_count) : node;
  const bool indices = takes_indices(list);
  if (indices && !data::is_integer(input->type)) {
    reader.fault(node.key, fmt::format("embedding takes whole numbers, found {} in input field `{}`",
                                       data::name_of(input->type), input->name));
    return nullptr;
  }
  return build_network(list, reader.path_of(node.key), {input->name, input->shape, indices ? at::kLong : at::kFloat});
}

const Network* ModelReader::read_graph(const KeyReader& reader, train::ModelSpec& spec) {
  if (!spec.data.train) return nullptr;
  const std::filesystem::path file = context_.folder / reader.text("graph");
  const std::string output = reader.text("output");
  std::vector<std::string> inputs = reader.texts("inputs");
  if (reader.has("input")) inputs.insert(inputs.begin(), reader.text("input"));
  try {
    const std::string key = nlohmann::json{file.string(), output}.dump();
    auto known = networks_.find(key);
    if (known == networks_.end()) {
      Network network{{{"graph", hash_of_file(file)}, {"output", output}}, nullptr, {}};
      network.graph = std::make_shared<const graph::Graph>(read_exported_graph(file, output));
      known = networks_.emplace(key, std::move(network)).first;
    }
    spec.data.inputs = fields_of_inputs(*known->second.graph, inputs, spec.data.train->inputs());
    return &known->second;
  } catch (const graph::GraphError& error) {
    reader.fault("graph", error.what());
    return nullptr;
  }
}

const Network* ModelReader::build_network(const Node& layers, const std::string& path, const graph::InputShape& input) {
  Network network{json_of(layers), nullptr, {}};
  const std::string key = nlohmann::json{network.source, input.name, input.shape, input.type == at::kLong}.dump();
  if (const auto known = networks_.find(key); known != networks_.end()) return &known->second;
  try {
    network.graph = std::make_shared<const graph::Graph>(graph::build_layer_list(network.source, input));
    network.python = graph::python_source(network.source, input);
  } catch (const graph::LayerError& error) {
    faults_.add(layer_place(layers, error.path), fmt::format("{}.{}", path, error.path), error.what());
    return nullptr;
  } catch (const graph::GraphError& error) {
    faults_.add(layers.place, path, error.what());
    return nullptr;
  }
  return &networks_.emplace(key, std::move(network)).first->second;
}

}  // namespace tutti::launch
