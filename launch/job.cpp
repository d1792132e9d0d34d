// Reads a job file: settings, data sets, and the variants of every model block.
#include "launch/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "launch/job_checks.h"
#include "launch/job_data.h"
#include "launch/job_document.h"
#include "launch/job_faults.h"
#include "launch/job_model.h"
#include "launch/job_settings.h"
#include "launch/job_source.h"
#include "launch/substitution.h"
#include "launch/sweep.h"

namespace tutti::launch {
namespace {

constexpr int64_t kMaxExpandedNodes = 20'000'000;  ///< values of all variants together

RunSpec read_run(const Node& block, const JobOptions& options, Faults& faults) {
  const KeyReader reader(run_block(), block, "run", faults);
  RunSpec run;
  run.out = options.out ? *options.out : std::filesystem::path(reader.text("out"));
  run.lanes = reader.integer("lanes");
  run.memory_bytes = reader.bytes("memory");
  run.deadline_seconds = reader.number("deadline");
  run.visit_milliseconds = reader.number("visit");
  run.reduction = reader.text("reduction") == "fast" ? RunSpec::Reduction::kFast : RunSpec::Reduction::kExact;
  run.trace = reader.text("trace");
  run.progress_seconds = reader.number("progress");
  run.measure_memory = reader.boolean("measure_memory");
  run.resume = options.resume;
  if (run.out.empty()) reader.fault("out", "missing: expected an output folder here, or `--out DIR`");
  return run;
}

/// The keys of `defaults` that models may take over; others become faults.
Node checked_defaults(const Node* defaults, Faults& faults) {
  Node checked = Node::map({});
  if (defaults == nullptr) return checked;
  if (defaults->kind != Node::Kind::kMap) {
    faults.add(defaults->place, "defaults", fmt::format("expected a mapping, found {}", describe(*defaults)));
    return checked;
  }
  std::vector<std::string> known = model_block().key_names();
  std::erase(known, "name");
  for (const Node& child : defaults->children) {
    if (std::ranges::find(known, child.key) == known.end()) {
      faults.add(child.key_place, "defaults",
                 fmt::format("unknown key `{}`; {}", child.key, expected_one_of(child.key, known)));
      continue;
    }
    checked.children.push_back(child);
    checked.children.back().inherited = true;
  }
  return checked;
}

bool uses_variable(const Node& node, const std::string& name) {
  const auto in = [&](const std::string& text) {
    const std::vector<std::string> names = variables_in(text);
    return std::ranges::find(names, name) != names.end();
  };
  if (in(node.text)) return true;
  return std::ranges::any_of(node.children,
                             [&](const Node& child) { return in(child.key) || uses_variable(child, name); });
}

/// A swept variable named like a key of a model sets that key, unless the block has it; a default gives way, unless it
/// uses the variable itself.
void put_implied_keys(Node& block, const Sweep& sweep) {
  for (const SweepVariable& variable : sweep.variables()) {
    if (model_block().find(variable.name) == nullptr || variable.name == "name") continue;
    const Node* existing = block.find(variable.name);
    const bool keep = existing != nullptr && (!existing->inherited || uses_variable(*existing, variable.name));
    if (!keep) block.put(variable.name, variable.place, Node::scalar("${" + variable.name + "}", variable.place));
  }
}

/// Takes a child out of a mapping.
std::optional<Node> take(Node& map, std::string_view key) {
  const auto child = std::ranges::find(map.children, key, &Node::key);
  if (child == map.children.end()) return std::nullopt;
  Node taken = std::move(*child);
  map.children.erase(child);
  return taken;
}

/// Reads the models of a file, block by block.
class ModelList {
 public:
  ModelList(ModelReader& reader, JobSettings& settings, Faults& faults, std::vector<train::ModelSpec>& models)
      : reader_(reader), settings_(settings), faults_(faults), models_(models) {}

  void read(const Node& list, const Node& defaults) {
    if (list.kind != Node::Kind::kList || list.children.empty()) {
      faults_.add(list.place, "models",
                  fmt::format("expected a list of models, found {}",
                              list.kind == Node::Kind::kList ? "an empty one" : describe(list)));
      return;
    }
    for (size_t index = 0; index < list.children.size() && !faults_.full(); ++index) {
      read_block(list.children[index], defaults, static_cast<int64_t>(index));
    }
    if (faults_.added() == 0) settings_.report_unused(names_);
  }

 private:
  struct Owner {
    std::string path;
    Place place;
  };

  void read_block(Node block, const Node& defaults, int64_t index) {
    const std::string path = fmt::format("models.{}", index);
    if (block.kind != Node::Kind::kMap) {
      faults_.add(block.place, path,
                  fmt::format("expected a mapping with `name`, `layers`, ..., found {}", describe(block)));
      return;
    }
    for (const Node& child : defaults.children) {
      if (block.find(child.key) == nullptr) block.children.push_back(child);
    }
    const Node* written_name = block.find("name");
    const std::string written = written_name != nullptr ? written_name->text : "";
    names_.push_back(written);
    settings_.apply_to_block(block, index, written);
    std::optional<Node> sweep_node = take(block, "sweep");
    const std::optional<Node> sample = take(block, "sample");
    if (sweep_node) sweep_node = substitute(*sweep_node, {}, path + ".sweep", faults_);
    const Sweep sweep(sweep_node ? &*sweep_node : nullptr, sample ? &*sample : nullptr, path, faults_);
    put_implied_keys(block, sweep);
    if (!within_limits(block, sweep, path)) return;
    for (int64_t variant = 0; variant < sweep.size() && !faults_.full(); ++variant) {
      read_variant(block, sweep, variant, path, written);
    }
  }

  bool within_limits(const Node& block, const Sweep& sweep, const std::string& path) {
    variant_count_ += sweep.size();
    expanded_nodes_ += sweep.size() * node_count(block);
    if (variant_count_ > Sweep::kMaxVariants) {
      faults_.add(block.place, path,
                  fmt::format("expected at most {} models in all, found {}", Sweep::kMaxVariants, variant_count_));
    } else if (expanded_nodes_ > kMaxExpandedNodes) {
      faults_.add(
          block.place, path,
          fmt::format("expected at most {} values in all variants, found {}", kMaxExpandedNodes, expanded_nodes_));
    } else {
      return true;
    }
    return false;
  }

  void read_variant(const Node& block, const Sweep& sweep, int64_t index, const std::string& path,
                    const std::string& written) {
    const Variables variables = sweep.variant(index);
    const size_t faults_before = faults_.added();
    Node node = substitute(block, variables, path, faults_);
    if (faults_.added() != faults_before) return;
    const Node* name = node.find("name");
    if (name != nullptr && name->text != written) {
      const std::string expanded = name->text;
      names_.push_back(expanded);
      settings_.apply_to_variant(node, expanded);
    }
    train::ModelSpec spec = reader_.read(node, path);
    spec.labels = nlohmann::json::object();
    for (const SweepVariable& variable : sweep.variables()) {
      spec.labels[variable.name] = json_of(variables.at(variable.name));
    }
    const Node* block_name = block.find("name");
    if (block_name != nullptr) check_name(spec.name, *block_name, sweep, path);
    models_.push_back(std::move(spec));
  }

  void check_name(const std::string& name, const Node& written, const Sweep& sweep, const std::string& path) {
    if (!is_valid_name(name)) {
      faults_.add(written.place, path + ".name",
                  fmt::format("expected 1 to 128 of A-Z a-z 0-9 . _ - with no dot first, found \"{}\"", name));
      return;
    }
    const auto [owner, is_new] = owners_.emplace(name, Owner{path, written.place});
    if (is_new) return;
    std::vector<std::string> unused;
    for (const SweepVariable& variable : sweep.variables()) {
      if (!uses_variable(written, variable.name)) unused.push_back("${" + variable.name + "}");
    }
    if (unused.empty()) unused.push_back("${index}");
    const std::string advice = sweep.size() > 1 ? fmt::format("add {} to the name", fmt::join(unused, " or "))
                                                : std::string("choose another name");
    faults_.add(written.place, path + ".name",
                fmt::format("expected a name of its own, found `{}` which is also a name of {} ({}); {}", name,
                            owner->second.path, faults_.text_of(owner->second.place), advice));
  }

  ModelReader& reader_;
  JobSettings& settings_;
  Faults& faults_;
  std::vector<train::ModelSpec>& models_;
  std::vector<std::string> names_;
  std::map<std::string, Owner> owners_;
  int64_t variant_count_ = 0;
  int64_t expanded_nodes_ = 0;
};

void warn_of_unused_data(const Job& job, const JobData& data, std::vector<std::string>& warnings) {
  std::set<std::string> used;
  for (const train::ModelSpec& model : job.models) used.insert(model.data.name);
  for (const auto& [name, set] : data) {
    if (!used.contains(name)) warnings.push_back(fmt::format("data.{}: no model uses this data set", name));
  }
}

}  // namespace

JobError::JobError(std::vector<std::string> faults)
    : UsageError(fmt::format("{}", fmt::join(faults, "\n"))), faults_(std::move(faults)) {}

Job load_job(const std::filesystem::path& file, const JobOptions& options, const DataOpener& open) {
  Faults faults(file.string(), options.settings);
  Node root = read_document(file, faults);
  JobSettings settings(options.settings, faults);
  faults.throw_if_any();
  if (root.kind != Node::Kind::kMap) {
    faults.add(root.place, "",
               fmt::format("expected a mapping with `run`, `data` and `models`, found {}", describe(root)));
    faults.throw_if_any();
  }
  settings.apply_to_file(root);
  const KeyReader reader(file_block(), root, "", faults);
  Job job;
  job.file = file;
  job.folder = options.folder ? *options.folder : file.parent_path();
  job.settings = options.settings;
  const Node* run = reader.node("run");
  job.run = read_run(run != nullptr ? substitute(*run, {}, "run", faults) : Node{}, options, faults);
  const JobData data =
      reader.has("data") ? read_data(*reader.node("data"), job.folder, open, faults, job.warnings) : JobData{};
  ModelWarnings model_warnings;
  ModelReader models({data, job.folder, job.run.reduction}, faults, model_warnings);
  const Node defaults = checked_defaults(reader.node("defaults"), faults);
  if (reader.has("models")) ModelList(models, settings, faults, job.models).read(*reader.node("models"), defaults);
  faults.throw_if_any();
  std::ranges::copy(model_warnings.texts(), std::back_inserter(job.warnings));
  warn_of_unused_data(job, data, job.warnings);
  warn_of_small_windows(job.models, job.warnings);
  job.hash = hash_of(job.models);
  return job;
}

}  // namespace tutti::launch
