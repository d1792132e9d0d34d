#include "src/train/model_files.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <torch/version.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "data/fnv_hash.h"

namespace tutti::train {

namespace fs = std::filesystem;

namespace {

std::string moment_key(const std::string& moment, const std::string& parameter) { return moment + "/" + parameter; }

std::string grain_key(size_t grain, const std::string& buffer) { return fmt::format("grain{}/{}", grain, buffer); }

/// Requires a tensor of this name and shape.
const StoredTensor& find(const SafetensorsFile& file, const std::string& name, at::IntArrayRef shape) {
  const StoredTensor* found = file.find(name);
  if (found == nullptr) {
    throw CheckpointError(
        fmt::format("{}: expected a tensor `{}`, found none of that name", file.path().string(), name));
  }
  if (found->shape != shape) {
    throw CheckpointError(fmt::format("{}: tensor `{}`: expected shape [{}], found [{}]", file.path().string(), name,
                                      fmt::join(shape, ", "), fmt::join(found->shape, ", ")));
  }
  return *found;
}

/// Reads a tensor that this program wrote from one of the same type.
void read_exactly(const SafetensorsFile& file, const std::string& name, const at::Tensor& into) {
  const StoredTensor& found = find(file, name, into.sizes());
  if (found.type != into.scalar_type()) {
    throw CheckpointError(fmt::format("{}: tensor `{}`: expected type {}, found {}", file.path().string(), name,
                                      c10::toString(into.scalar_type()), c10::toString(found.type)));
  }
  file.read(found, into);
}

std::vector<NamedTensor> weights_of(const graph::Graph& graph, const ModelMemory& memory) {
  std::vector<NamedTensor> weights;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    weights.push_back({graph.parameters[p].name, memory.parameter_views[p]});
    for (const std::string& name : graph.parameters[p].other_names)
      weights.push_back({name, memory.parameter_views[p]});
  }
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    if (!graph.buffers[b].persistent) continue;
    weights.push_back({graph.buffers[b].name, memory.averaged_buffers[b]});
    for (const std::string& name : graph.buffers[b].other_names) weights.push_back({name, memory.averaged_buffers[b]});
  }
  return weights;
}

/// Calls `visit(name, tensor)` for everything that state.safetensors holds.
template <typename Visit>
void for_each_state(const ModelSpec& spec, const graph::Graph& graph, const ModelMemory& memory, const Visit& visit) {
  const std::vector<std::string> names = spec.optimizer.moment_names();
  for (size_t m = 0; m < memory.moments.size(); ++m) {
    for (size_t p = 0; p < graph.parameters.size(); ++p) {
      visit(moment_key(names[m], graph.parameters[p].name),
            memory.view(memory.moments[m], graph, static_cast<int64_t>(p)));
    }
  }
  for (size_t grain = 0; grain < memory.grain_buffers.size(); ++grain) {
    for (size_t b = 0; b < graph.buffers.size(); ++b) {
      visit(grain_key(grain, graph.buffers[b].name), memory.grain_buffers[grain][b]);
    }
  }
}

int64_t kept_bytes(const StoredCheckpoint* checkpoint, const char* log) {
  return checkpoint == nullptr ? 0 : checkpoint->description.at(log).get<int64_t>();
}

/// What bits depend on beside the model's settings.
nlohmann::json own_environment() { return {{"libtorch", TORCH_VERSION}, {"cpu_level", at::get_cpu_capability()}}; }

void warn_of_other_environment(const nlohmann::json& description) {
  static std::once_flag said;
  const nlohmann::json written = description.value("environment", nlohmann::json());
  if (written == own_environment()) return;
  std::call_once(said, [&] {
    spdlog::warn(
        "the checkpoints were written with {}, this run has {}: results will agree within rounding, not bit for "
        "bit",
        written.dump(), own_environment().dump());
  });
}

}  // namespace

std::string spec_hash(const ModelSpec& spec) { return fmt::format("{:016x}", data::fnv_hash(spec.source.dump())); }

Checkpoint make_checkpoint(const ModelSpec& spec, const graph::Graph& graph, const ModelMemory& memory,
                           const Progress& progress) {
  Checkpoint checkpoint;
  checkpoint.step = progress.step;
  checkpoint.weights = weights_of(graph, memory);
  for_each_state(spec, graph, memory, [&](const std::string& name, const at::Tensor& tensor) {
    checkpoint.state.push_back({name, tensor});
  });
  checkpoint.description = {{"format", 1},
                            {"name", spec.name},
                            {"spec_hash", spec_hash(spec)},
                            {"spec", spec.source},
                            {"environment", own_environment()},
                            {"progress", progress}};
  return checkpoint;
}

Progress progress_of(const nlohmann::json& manifest, const ModelSpec& spec) {
  if (manifest.at("spec_hash") != spec_hash(spec)) {
    throw CheckpointError(
        fmt::format("checkpoint of step {}: expected the settings of hash {}, found {}; it belongs to a "
                    "model with other settings",
                    manifest.at("step").dump(), spec_hash(spec), manifest.at("spec_hash").dump()));
  }
  return manifest.at("progress").get<Progress>();
}

Progress restore(const StoredCheckpoint& checkpoint, const ModelSpec& spec, const graph::Graph& graph,
                 ModelMemory& memory) {
  Progress progress = progress_of(checkpoint.description, spec);
  warn_of_other_environment(checkpoint.description);
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    read_exactly(checkpoint.weights, graph.parameters[p].name, memory.parameter_views[p]);
  }
  for_each_state(spec, graph, memory, [&](const std::string& name, const at::Tensor& tensor) {
    read_exactly(checkpoint.state, name, tensor);
  });
  return progress;
}

void load_weights(const fs::path& path, const graph::Graph& graph, ModelMemory& memory) {
  const SafetensorsFile file(path);
  const auto read = [&](const std::string& name, const at::Tensor& into) {
    file.read(find(file, name, into.sizes()), into);
  };
  for (size_t p = 0; p < graph.parameters.size(); ++p) read(graph.parameters[p].name, memory.parameter_views[p]);
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    if (file.find(graph.buffers[b].name) == nullptr) continue;
    for (const auto& buffers : memory.grain_buffers) read(graph.buffers[b].name, buffers[b]);
  }
}

ModelFiles::ModelFiles(const fs::path& folder, const ModelSpec& spec, const StoredCheckpoint* resumed)
    : spec_(spec),
      store_((fs::create_directories(folder), folder)),
      metrics_(folder / "metrics.jsonl", kept_bytes(resumed, "metrics_bytes")),
      timing_(folder / "timing.jsonl", kept_bytes(resumed, "timing_bytes")) {
  store_.remove_unfinished();
}

void ModelFiles::store(Checkpoint checkpoint) {
  metrics_.sync();
  timing_.sync();
  checkpoint.description["metrics_bytes"] = metrics_.size_bytes();
  checkpoint.description["timing_bytes"] = timing_.size_bytes();
  store_.write(checkpoint, spec_.checkpoint.keep);
}

bool ModelFiles::write_checkpoint(const Checkpoint& checkpoint) {
  try {
    store(checkpoint);
    warned_ = false;
    return true;
  } catch (const std::exception& error) {
    if (!std::exchange(warned_, true)) {
      spdlog::warn(
          "model {}: the checkpoint of step {} could not be written ({}); training goes on, the previous one "
          "stays, and the next one is tried as usual",
          spec_.name, checkpoint.step, error.what());
    }
    return false;
  }
}

void ModelFiles::write_last(const Checkpoint& checkpoint) {
  constexpr int kTries = 3;
  for (int attempt = 1;; ++attempt) {
    try {
      store(checkpoint);
      return store_.write_weights("final", checkpoint.weights);
    } catch (const std::exception& error) {
      if (attempt == kTries) {
        throw std::runtime_error(
            fmt::format("the results of step {} could not be written: {}; the last good checkpoint "
                        "stays: make room and go on with --resume",
                        checkpoint.step, error.what()));
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

void ModelFiles::write_weights(const std::string& name, const std::vector<NamedTensor>& weights) {
  store_.write_weights(name, weights);
}

}  // namespace tutti::train
