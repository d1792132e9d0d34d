// One model block, substituted, into a model's specification.
#ifndef TUTTI_LAUNCH_JOB_MODEL_H
#define TUTTI_LAUNCH_JOB_MODEL_H

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/job.h"
#include "launch/job_data.h"
#include "launch/job_faults.h"
#include "launch/key_reader.h"
#include "launch/model_warnings.h"
#include "src/graph/layer_list.h"

namespace tutti::launch {

/// A layer list built, or an archive imported: shared by all models with the same layers and input, or archive.
struct Network {
  nlohmann::json source;  ///< the layers; or the hash of the archive, and the output
  std::shared_ptr<const graph::Graph> graph;
  std::string python;  ///< empty for an archive
};

/// Reads the models of one job file.
class ModelReader {
 public:
  struct Context {
    const JobData& data;
    std::filesystem::path folder;  ///< of the job file
    RunSpec::Reduction reduction = RunSpec::Reduction::kExact;
  };

  ModelReader(Context context, Faults& faults, ModelWarnings& warnings);

  /// Reads and checks one variant. What it returns is complete only if no fault was added.
  train::ModelSpec read(const Node& variant, const std::string& path);

 private:
  void read_training(const KeyReader& reader, train::ModelSpec& spec) const;
  void read_methods(const KeyReader& reader, train::ModelSpec& spec) const;
  void read_data(const KeyReader& reader, train::ModelSpec& spec) const;
  void read_init(const KeyReader& reader, train::ModelSpec& spec) const;
  void read_early_stopping(const KeyReader& reader, train::ModelSpec& spec) const;
  void read_checkpoint(const KeyReader& reader, train::ModelSpec& spec) const;
  void warn_of_unused_weights(const KeyReader& reader, const train::ModelSpec& spec);
  const Node* network_node(const KeyReader& reader) const;
  const Network* read_network(const KeyReader& reader, const Node& node, train::ModelSpec& spec);
  const Network* read_graph(const KeyReader& reader, train::ModelSpec& spec);
  const Network* build_network(const Node& layers, const std::string& path, const graph::InputShape& input);

  Context context_;
  Faults& faults_;
  ModelWarnings& warnings_;
  std::map<std::string, Network> networks_;
  std::map<std::string, std::vector<std::string>> init_names_;  // the tensors of each file of first weights
};

}  // namespace tutti::launch

#endif
