// Everything that defines one model's training: what a job file says of it, resolved.
#ifndef TUTTI_SRC_TRAIN_MODEL_SPEC_H
#define TUTTI_SRC_TRAIN_MODEL_SPEC_H

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/data_set.h"
#include "data/sample_order.h"
#include "src/graph/graph.h"
#include "src/program/loss.h"
#include "src/program/metric.h"
#include "src/train/optimizer.h"
#include "src/train/schedule.h"

namespace tutti::train {

/// The data a model trains on, opened.
struct ModelData {
  std::string name;  ///< of the data set in the job
  std::shared_ptr<const data::DataSet> train;
  std::shared_ptr<const data::DataSet> validation;  ///< may be null; == train when held_out > 0
  std::shared_ptr<const data::DataSet> test;        ///< may be null
  double held_out = 0;                              ///< fraction of train that is validation
  uint64_t seed = 0;                                ///< data-set seed: block order, held-out rows
  data::Augmentation augmentation;                  ///< of training rows
  bool normalise = true;                            ///< false: inputs as stored (integers as their value)
  std::vector<std::string> inputs;                  ///< field for each graph input, in order (keys `input`, `inputs`)
  std::string target;                               ///< target field (key `target`); default: the only one
};

/// Parameter settings by state-dict name pattern; the first rule that matches a parameter holds.
struct ParameterRule {
  std::string pattern;  ///< shell-style: "*.bias", "layers.3.*"; "norms", "biases" name all of that kind
  bool frozen = false;
  std::optional<double> lr_factor = {};
  std::optional<double> weight_decay = {};
};

struct EarlyStopping {
  std::string metric = "loss";  ///< validation (or test, without validation) metric
  int64_t patience = 5;         ///< epochs without improvement
  double min_delta = 0;
};

struct CheckpointSpec {
  int64_t every_steps = 0;    ///< 0 = not by steps
  int64_t every_epochs = 0;   ///< 0 = not by epochs
  double every_minutes = 10;  ///< 0 = not by time
  int64_t keep = 1;           ///< newest ones that stay
  std::string best;           ///< metric whose best evaluation is kept as `best/`; empty = none
};

struct ModelSpec {
  std::string name;
  nlohmann::json source;  ///< the resolved description, all bit-relevant keys with their values; hashed
  nlohmann::json labels;  ///< the sweep variables of this variant, {"width": 16, "optimizer": "adam"}
  std::shared_ptr<const graph::Graph> graph;
  std::string python;  ///< a model.py that rebuilds the network in PyTorch
  ModelData data;
  program::LossSpec loss;
  std::vector<program::Metric> metrics;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  ClipSpec clip;
  std::vector<ParameterRule> parameter_rules;
  uint64_t seed = 0;
  int64_t batch = 32;      ///< rows of one global batch
  int64_t grains = 1;      ///< a power of two
  int64_t accumulate = 1;  ///< global batches per optimizer step
  int64_t epochs = 1;
  std::optional<int64_t> max_steps;  ///< optimizer steps, if fewer than the epochs'
  bool drop_last = false;
  data::SampleOrder::Kind order = data::SampleOrder::Kind::kShuffled;
  int64_t evaluate_every = 1;  ///< epochs between evaluations; the last epoch is always evaluated
  int64_t evaluation_batch = 256;
  int64_t log_every = 0;  ///< steps between lines in metrics.jsonl; 0 = one per epoch
  std::string init_file;  ///< safetensors with the initial weights; empty = the model's own random stream
  bool double_precision = false;
  bool island = false;  ///< engine: the whole model as one autograd island
  std::optional<EarlyStopping> early_stopping;
  CheckpointSpec checkpoint;
  int64_t ranks = 0;  ///< how many ranks share the model; 0 = the planner's choice

  /// The rows of the largest grain of a full batch.
  int64_t greatest_grain_rows() const { return (batch + grains - 1) / grains; }
};

}  // namespace tutti::train

#endif
