// The unified network: all models that a rank holds, their programs, and the fused buffers they lie in.
#ifndef TUTTI_SRC_TRAIN_UNIFIED_NETWORK_H
#define TUTTI_SRC_TRAIN_UNIFIED_NETWORK_H

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/program/program.h"
#include "src/train/model_memory.h"
#include "src/train/model_rest.h"
#include "src/train/model_run.h"
#include "src/train/model_spec.h"
#include "src/train/streamed_sets.h"
#include "src/train/trace.h"

namespace tutti::train {

/// One model that this rank takes part in.
struct Member {
  const ModelSpec* spec = nullptr;
  comm::Team team;
  int tag = 0;
  std::optional<int64_t> resumed_step;  ///< the checkpoint to go on from; none = from the start
  std::optional<Rest> rest;             ///< it is not trained now, nor tried, and owns no memory
};

/// How a model stands.
struct ReportedModel {
  const ModelSpec* spec = nullptr;
  ModelReport report;
};

struct UnifiedNetworkOptions {
  int rank = 0;
  comm::Communicator* communicator = nullptr;
  comm::ExchangeQueue* queue = nullptr;
  std::filesystem::path models_folder;  ///< OUT/models
  int64_t lane_count = 1;
  Reduction reduction = Reduction::kExact;
  const std::atomic<bool>* stop = nullptr;
  std::function<void()> notify;
  Trace* trace = nullptr;
};

/// Bytes, by what they are for.
struct MemoryReport {
  int64_t fused_bytes = 0;     ///< parameters, gradients, moments, the graphs' own buffers
  int64_t region_bytes = 0;    ///< what one lane's region must hold: the largest program's need
  int64_t exchange_bytes = 0;  ///< what the sums over teams allocate, were they all in flight at once
  int64_t stream_bytes = 0;    ///< what streaming holds at most of the data sets that the models read

  int64_t planned_bytes(int64_t lane_count) const {
    return fused_bytes + lane_count * region_bytes + exchange_bytes + stream_bytes;
  }
};

/// The programs of a set of models: models of equal graphs, precision and engine (a group) share one.
class Programs {
 public:
  /// The program of the model's group. Its graph has the names and first values of the first model that asked.
  std::shared_ptr<const program::Program> of(const ModelSpec& spec);

 private:
  std::map<std::string, std::shared_ptr<const program::Program>> by_signature_;
};

/// The graph that is trained: the spec's, with the parameters frozen that its rules freeze.
std::shared_ptr<const graph::Graph> trained_graph(const ModelSpec& spec);

/// Builds everything a rank needs to train its models; nothing runs yet but one trial step and one trial evaluation
/// per group and grain size, which measure what a lane's region must hold.
class UnifiedNetwork {
 public:
  /// Collects faults of single models instead of throwing: see faults(). `members` must stay where they are.
  UnifiedNetwork(const std::vector<Member>& members, Programs& programs, const UnifiedNetworkOptions& options);

  /// "model NAME: what is wrong", for each model that cannot be trained.
  const std::vector<std::string>& faults() const { return faults_; }

  /// The models' runs, once the lanes exist. Call once.
  std::vector<ModelRun*> start_runs();

  /// Any thread, once the runs have started: how the models stand of whose team this rank is the first member.
  std::vector<ReportedModel> reports() const;

  MemoryReport memory() const { return memory_; }
  const StreamedSets& streams() const { return streams_; }

 private:
  struct Prepared {
    const Member* member;
    std::shared_ptr<const graph::Graph> graph;
    std::shared_ptr<const program::Program> program;
    ModelLayout layout;
  };
  void admit(const Member& member);
  void prepare(const Member& member);
  void put_to_rest(const Member& member);
  TeamLine line_of(const Member& member) const;

  UnifiedNetworkOptions options_;
  Programs& programs_;
  std::vector<Prepared> prepared_;
  std::map<std::string, int64_t> measured_;  // region bytes by group and grain size
  int64_t predicted_bytes_ = 0;              // the same for models whose trial failed, the greatest
  std::unique_ptr<FusedBuffers> fused_;
  std::vector<std::unique_ptr<ModelRun>> runs_;
  std::vector<ReportedModel> resting_;  // those of whose team this rank is the first member
  std::vector<std::string> faults_;
  MemoryReport memory_;
  StreamedSets streams_;
};

}  // namespace tutti::train

#endif
