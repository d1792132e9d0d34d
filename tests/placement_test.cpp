// Placement and cost model: against exhaustive search, and against what a program's graph says.
#include "partition/placement.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "data/philox.h"
#include "partition/placing.h"
#include "src/graph/layer_list.h"
#include "src/program/lane_allocator.h"

namespace tutti::partition {
namespace {

using testing::HasSubstr;

/// A stream of numbers for test inputs.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : key_(data::RandomKey::of(seed, "placement_test")) {}

  double uniform(double low, double high) {
    const data::PhiloxWords words = data::philox(key_, {count_++, 0, 0, 0});
    return low + (high - low) * data::uniform_double(words[0], words[1]);
  }
  /// A whole number from `low` to `high`, both included.
  int whole(int low, int high) { return static_cast<int>(uniform(low, high + 1)); }

 private:
  data::RandomKey key_;
  uint32_t count_ = 0;
};

ModelCost whole_model(double seconds, const std::string& name = "m") {
  ModelCost cost;
  cost.name = name;
  cost.step_count = 100;
  cost.grain_seconds = seconds;
  return cost;
}

ModelCost grained_model(double grain_seconds, int64_t grains, double update_seconds = 0) {
  ModelCost cost = whole_model(grain_seconds);
  cost.grain_count = grains;
  cost.update_seconds = update_seconds;
  return cost;
}

Cluster equal_ranks(size_t count, int64_t lane_count = 1) {
  return {std::vector<RankCapacity>(count, {.lane_count = lane_count}), {.latency_seconds = 0, .seconds_per_byte = 0}};
}

/// Calls `visit` with every way to choose `digits` numbers below `base`.
void for_each_choice(size_t digits, size_t base, const std::function<void(const std::vector<size_t>&)>& visit) {
  std::vector<size_t> choice(digits, 0);
  while (true) {
    visit(choice);
    size_t i = 0;
    while (i < digits && ++choice[i] == base) choice[i++] = 0;
    if (i == digits) return;
  }
}

/// The least makespan of whole models, by trying every assignment.
double best_whole_makespan(const std::vector<ModelCost>& models, const Cluster& cluster) {
  double best = std::numeric_limits<double>::infinity();
  for_each_choice(models.size(), cluster.ranks.size(), [&](const std::vector<size_t>& rank_of) {
    std::vector<double> busy(cluster.ranks.size(), 0.0);
    for (size_t i = 0; i < models.size(); ++i) {
      busy[rank_of[i]] += models[i].whole_seconds() / cluster.ranks[rank_of[i]].speed;
    }
    best = std::min(best, *std::ranges::max_element(busy));
  });
  return best;
}

/// No placement, whichever grain goes where and for free, is faster than this.
double best_makespan_of_grains(const std::vector<ModelCost>& models, const Cluster& cluster) {
  size_t grain_count = 0;
  for (const ModelCost& model : models) grain_count += static_cast<size_t>(model.grain_count);
  double best = std::numeric_limits<double>::infinity();
  for_each_choice(grain_count, cluster.ranks.size(), [&](const std::vector<size_t>& rank_of) {
    std::vector<double> busy(cluster.ranks.size(), 0.0);
    size_t grain = 0;
    for (const ModelCost& model : models) {
      std::vector<bool> takes_part(cluster.ranks.size(), false);
      for (int64_t g = 0; g < model.grain_count; ++g, ++grain) {
        busy[rank_of[grain]] += model.grain_seconds / cluster.ranks[rank_of[grain]].speed;
        takes_part[rank_of[grain]] = true;
      }
      for (size_t r = 0; r < busy.size(); ++r) {
        if (takes_part[r]) busy[r] += model.update_seconds / cluster.ranks[r].speed;
      }
    }
    best = std::min(best, *std::ranges::max_element(busy));
  });
  return best;
}

/// What must hold for every plan.
void check_plan(const Plan& plan, const std::vector<ModelCost>& models, const Cluster& cluster) {
  ASSERT_EQ(plan.models.size(), models.size());
  ASSERT_EQ(plan.ranks.size(), cluster.ranks.size());
  for (size_t i = 0; i < models.size(); ++i) {
    const comm::Team& team = plan.models[i].team;
    EXPECT_EQ(plan.models[i].name, models[i].name);
    EXPECT_EQ(team.grain_count, models[i].grain_count);
    int64_t covered = 0;
    std::vector<int> ranks;
    for (const comm::GrainRun& run : team.runs) {
      EXPECT_EQ(run.begin, covered);
      EXPECT_LT(run.begin, run.end);
      EXPECT_EQ(comm::subtrees_of(run.begin, run.end).size(), 1U) << run.begin << " to " << run.end;
      covered = run.end;
      EXPECT_TRUE(run.rank >= 0 && run.rank < std::ssize(cluster.ranks)) << run.rank;
      ranks.push_back(run.rank);
    }
    EXPECT_EQ(covered, models[i].grain_count) << "model " << i;
    std::ranges::sort(ranks);
    EXPECT_TRUE(std::ranges::adjacent_find(ranks) == ranks.end()) << "a rank is twice in the team of model " << i;
    EXPECT_LE(plan.models[i].seconds, plan.makespan_seconds * (1 + 1e-12));
  }
  EXPECT_LE(plan.lower_bound_seconds, plan.makespan_seconds * (1 + 1e-12));
}

std::vector<ModelCost> random_whole_models(Numbers& numbers, size_t count) {
  std::vector<ModelCost> models;
  for (size_t i = 0; i < count; ++i) models.push_back(whole_model(numbers.whole(1, 20)));
  return models;
}

TEST(Placement, OfWholeModelsIsWithinGrahamsBoundOfTheOptimum) {
  Numbers numbers(7);
  for (int trial = 0; trial < 60; ++trial) {
    for (size_t rank_count = 1; rank_count <= 4; ++rank_count) {
      const std::vector<ModelCost> models = random_whole_models(numbers, 1 + static_cast<size_t>(trial) % 6);
      const Cluster cluster = equal_ranks(rank_count);
      const Plan plan = place(models, cluster);
      check_plan(plan, models, cluster);
      const double optimum = best_whole_makespan(models, cluster);
      const double ratio = 4.0 / 3 - 1 / (3 * static_cast<double>(rank_count));
      EXPECT_LE(plan.makespan_seconds, ratio * optimum * (1 + 1e-12)) << "trial " << trial << ", ranks " << rank_count;
      EXPECT_GE(plan.makespan_seconds, optimum * (1 - 1e-12)) << "trial " << trial << ", ranks " << rank_count;
      EXPECT_LE(plan.lower_bound_seconds, optimum * (1 + 1e-12)) << "trial " << trial << ", ranks " << rank_count;
    }
  }
}

TEST(Placement, OfWholeModelsOnUnequalRanksIsWithinItsBoundOfTheOptimum) {
  Numbers numbers(8);
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<ModelCost> models = random_whole_models(numbers, 1 + static_cast<size_t>(trial) % 6);
    Cluster cluster = equal_ranks(2 + static_cast<size_t>(trial) % 3);
    for (RankCapacity& rank : cluster.ranks) rank.speed = numbers.uniform(0.5, 3);
    const Plan plan = place(models, cluster);
    check_plan(plan, models, cluster);
    const double optimum = best_whole_makespan(models, cluster);
    EXPECT_LE(plan.makespan_seconds, 1.5773 * optimum) << "trial " << trial;
    EXPECT_LE(plan.lower_bound_seconds, optimum * (1 + 1e-12)) << "trial " << trial;
  }
}

TEST(Placement, LowerBoundHoldsForEverySpreadOfGrains) {
  Numbers numbers(9);
  for (int trial = 0; trial < 25; ++trial) {
    const int model_count = 2 + trial % 2;
    std::vector<ModelCost> models;
    models.reserve(static_cast<size_t>(model_count));
    for (int i = 0; i < model_count; ++i) {
      models.push_back(
          grained_model(numbers.whole(1, 9), int64_t{1} << numbers.whole(0, 2), 0.1 * numbers.whole(1, 9)));
    }
    Cluster cluster = equal_ranks(2);
    cluster.ranks[1].speed = trial % 3 == 0 ? 1.0 : 2.0;
    const double optimum = best_makespan_of_grains(models, cluster);
    EXPECT_LE(lower_bound_seconds(models, cluster), optimum * (1 + 1e-12)) << "trial " << trial;
    const Plan plan = place(models, cluster);
    check_plan(plan, models, cluster);
    EXPECT_GE(plan.makespan_seconds, optimum * (1 - 1e-12)) << "trial " << trial;
  }
}

TEST(Placement, WorksForAnyNumberOfRanksModelsAndLanes) {
  Numbers numbers(10);
  for (const size_t rank_count : {1, 2, 3, 5, 7, 16}) {
    for (const int model_count : {1, 2, 5, 23}) {
      std::vector<ModelCost> models;
      for (int i = 0; i < model_count; ++i) {
        models.push_back(grained_model(numbers.whole(1, 9), int64_t{1} << numbers.whole(0, 4), 0.1));
        models.back().asked_ranks = std::max(0, numbers.whole(-2, 3));
      }
      const Cluster cluster = equal_ranks(rank_count, 1 + static_cast<int64_t>(rank_count) % 3);
      check_plan(place(models, cluster), models, cluster);
    }
  }
}

TEST(Placement, SpreadsAModelThatIsTooBigForOneRank) {
  const std::vector<ModelCost> models = {grained_model(10, 8), whole_model(5), whole_model(5)};
  const Cluster cluster = equal_ranks(3);
  const Plan plan = place(models, cluster);
  check_plan(plan, models, cluster);
  EXPECT_GT(plan.models[0].team.runs.size(), 1U);
  EXPECT_LE(plan.makespan_seconds, 45);
}

TEST(Placement, KeepsModelsWholeWhereThatIsAsFast) {
  const std::vector<ModelCost> models(6, grained_model(1, 8));
  const Plan plan = place(models, equal_ranks(3));
  for (const ModelPlacement& model : plan.models) EXPECT_EQ(model.team.runs.size(), 1U);
  EXPECT_DOUBLE_EQ(plan.makespan_seconds, 16);
  EXPECT_DOUBLE_EQ(plan.gap(), 1);
}

TEST(Placement, KeepsAModelWholeWhereTheLinkIsTooSlow) {
  Cluster cluster = equal_ranks(2);
  cluster.link = {.latency_seconds = 10, .seconds_per_byte = 0};
  EXPECT_EQ(place({grained_model(10, 8)}, cluster).models[0].team.runs.size(), 1U);
  cluster.link.latency_seconds = 1e-6;
  EXPECT_EQ(place({grained_model(10, 8)}, cluster).models[0].team.runs.size(), 2U);
}

TEST(Placement, GivesAModelTheRanksItAsksFor) {
  std::vector<ModelCost> models(4, grained_model(1, 8));
  models[2].asked_ranks = 3;
  const Plan plan = place(models, equal_ranks(4));
  std::vector<int64_t> lengths;
  for (const comm::GrainRun& run : plan.models[2].team.runs) lengths.push_back(run.end - run.begin);
  EXPECT_THAT(lengths, testing::ElementsAre(4, 2, 2));
  models[2].asked_ranks = 9;
  const Plan limited = place(models, equal_ranks(4));
  EXPECT_EQ(limited.models[2].team.runs.size(), 4U);
  EXPECT_THAT(limited.notes, testing::Contains(HasSubstr("asks for 9 ranks and gets 4")));
}

TEST(Placement, GivesTheLongestRunToTheFastestRank) {
  ModelCost model = grained_model(1, 8);
  model.asked_ranks = 3;
  Cluster cluster = equal_ranks(3);
  cluster.ranks[1].speed = 2;
  const Plan plan = place({model}, cluster);
  EXPECT_EQ(plan.models[0].team.runs[0].rank, 1);
  EXPECT_DOUBLE_EQ(plan.makespan_seconds, 2);
}

TEST(Placement, UsesTheLanesOfARank) {
  const std::vector<ModelCost> models(4, whole_model(1));
  EXPECT_DOUBLE_EQ(place(models, equal_ranks(1, 4)).makespan_seconds, 1);
  EXPECT_DOUBLE_EQ(place({grained_model(1, 8)}, equal_ranks(1, 4)).makespan_seconds, 2);
  EXPECT_DOUBLE_EQ(place({whole_model(1)}, equal_ranks(1, 4)).makespan_seconds, 1);
}

TEST(Placement, SaysThatRanksAreWithoutWork) {
  const Plan plan = place({whole_model(1)}, equal_ranks(3));
  EXPECT_THAT(plan.notes, testing::ElementsAre(HasSubstr("2 of 3 ranks have none (1, 2)")));
  EXPECT_EQ(plan.ranks[1].idle_share, 1);
  EXPECT_EQ(plan.ranks[0].idle_share, 0);
}

TEST(Placement, OfNothingIsAnEmptyPlan) {
  const Plan plan = place({}, equal_ranks(2));
  EXPECT_TRUE(plan.models.empty());
  EXPECT_EQ(plan.makespan_seconds, 0);
  EXPECT_EQ(plan.gap(), 1);
  EXPECT_THROW(place({}, {}), std::invalid_argument);
}

ModelCost model_of_bytes(const std::string& name, double seconds, int64_t state_bytes, int64_t transient_bytes) {
  ModelCost cost = whole_model(seconds, name);
  cost.memory = {.state_bytes = state_bytes, .transient_bytes = transient_bytes};
  return cost;
}

TEST(Placement, HonoursTheMemoryLimitOfEveryRank) {
  const std::vector<ModelCost> models = {model_of_bytes("a", 3, 600, 100), model_of_bytes("b", 2, 600, 50),
                                         model_of_bytes("c", 1, 300, 100)};
  Cluster cluster = equal_ranks(2);
  for (RankCapacity& rank : cluster.ranks) rank.memory_bytes = 1000;
  const Plan plan = place(models, cluster);
  check_plan(plan, models, cluster);
  for (const RankLoad& rank : plan.ranks) EXPECT_LE(rank.bytes, 1000);
  EXPECT_EQ(plan.ranks[0].bytes + plan.ranks[1].bytes, 600 + 600 + 300 + 100 + 100)
      << "one region per lane, the largest";
}

TEST(Placement, PutsTheLargestFirstWhereMemoryIsShort) {
  // By time, the two of 40 bytes would go to different ranks, and the one of 90 would fit nowhere.
  const std::vector<ModelCost> models = {model_of_bytes("a", 3, 40, 0), model_of_bytes("b", 2, 40, 0),
                                         model_of_bytes("c", 1, 90, 0)};
  Cluster cluster = equal_ranks(2);
  for (RankCapacity& rank : cluster.ranks) rank.memory_bytes = 100;
  check_plan(place(models, cluster), models, cluster);
}

TEST(Placement, RefusesWhatCannotFitWithTheNumbers) {
  const std::vector<ModelCost> models = {model_of_bytes("tiny", 3, 100, 10), model_of_bytes("large", 2, 5000, 70)};
  Cluster cluster = equal_ranks(2);
  cluster.ranks[0].memory_bytes = 1000;
  cluster.ranks[1].memory_bytes = 2000;
  try {
    place(models, cluster);
    FAIL() << "placed";
  } catch (const PlacementError& error) {
    EXPECT_THAT(error.what(), HasSubstr("model large needs 5000 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("70 for each lane"));
    EXPECT_THAT(error.what(), HasSubstr("most room has 2000 left"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("tiny")));
  }
}

TEST(Placement, CountsPendingPartialSumsAndTheExchange) {
  ModelCost model = grained_model(1, 8);
  model.memory = {.state_bytes = 1000, .gradient_bytes = 400, .element_count = 100};
  const comm::Team alone{8, {{0, 0, 8}}};
  const comm::Team pair{8, {{0, 0, 4}, {1, 4, 8}}};
  // One lane adds grains in order: log2(8) pending sums and the gradient being computed.
  EXPECT_EQ(member_bytes(model.memory, alone, 0, 1), 1000 + 4 * 400);
  EXPECT_GT(member_bytes(model.memory, pair, 0, 1), 1000 + 3 * 400);
  model.memory.accumulates = true;
  EXPECT_EQ(member_bytes(model.memory, alone, 0, 1), 1000 + 5 * 400);
}

TEST(SubtreeRuns, AreCompleteSubtreesInFallingOrder) {
  using testing::ElementsAre;
  EXPECT_THAT(subtree_runs(8, 1), ElementsAre(8));
  EXPECT_THAT(subtree_runs(8, 3), ElementsAre(4, 2, 2));
  EXPECT_THAT(subtree_runs(8, 5), ElementsAre(2, 2, 2, 1, 1));
  for (const int64_t grains : {1, 2, 4, 8, 16, 64}) {
    for (int64_t members = 1; members <= grains; ++members) {
      const std::vector<int64_t> runs = subtree_runs(grains, members);
      int64_t begin = 0;
      for (const int64_t length : runs) {
        EXPECT_EQ(comm::subtrees_of(begin, begin + length).size(), 1U) << grains << " over " << members;
        begin += length;
      }
      EXPECT_EQ(begin, grains);
      EXPECT_EQ(std::ssize(runs), members);
      EXPECT_LE(runs.front(), 2 * runs.back()) << grains << " over " << members << ": as even as subtrees allow";
    }
  }
}

TEST(ExchangeSeconds, GrowWithTheSubtreesAMemberSends) {
  const Link link{.latency_seconds = 0, .seconds_per_byte = 1};
  EXPECT_EQ(exchange_seconds(link, {8, {{0, 0, 8}}}, 100), 0);
  EXPECT_DOUBLE_EQ(exchange_seconds(link, {8, {{0, 0, 4}, {1, 4, 8}}}, 100), 100) << "a ring's 2 (p - 1) / p";
  EXPECT_DOUBLE_EQ(exchange_seconds(link, {8, {{0, 0, 3}, {1, 3, 6}, {2, 6, 8}}}, 300), 600)
      << "two subtrees each: 1.5 times a ring's";
}

TEST(Plan, IsShownAsJsonAndAsATable) {
  std::vector<ModelCost> models = {grained_model(10, 2), whole_model(5)};
  models[0].name = "big";
  models[0].asked_ranks = 2;
  const Plan plan = place(models, equal_ranks(2));
  const nlohmann::json json = to_json(plan);
  EXPECT_EQ(json["models"][0]["name"], "big");
  EXPECT_EQ(json["models"][0]["runs"].size(), 2U);
  EXPECT_EQ(json["ranks"].size(), 2U);
  EXPECT_EQ(json["makespan_seconds"], 15.0);
  const std::string table = to_table(plan);
  EXPECT_THAT(table, HasSubstr("big"));
  EXPECT_THAT(table, HasSubstr("15.00 s"));
  EXPECT_THAT(table, HasSubstr("gap 1.20"));
}

/// Rows of zeros, all of class 0.
class ZeroRows : public data::DataSet {
 public:
  ZeroRows(int64_t rows, std::vector<int64_t> shape) : rows_(rows) {
    inputs_ = {{.name = "x", .shape = std::move(shape)}};
    targets_ = {{.name = "y", .type = data::ElementType::kInt64}};
  }
  int64_t row_count() const override { return rows_; }
  const std::vector<data::Field>& inputs() const override { return inputs_; }
  const std::vector<data::Field>& targets() const override { return targets_; }
  uint64_t fingerprint() const override { return 0; }
  void gather(const data::Field&, std::span<const int64_t>, const data::Augmentation&, data::AugmentationKey,
              std::span<float> out) const override {
    std::ranges::fill(out, 0.0F);
  }
  void gather(const data::Field&, std::span<const int64_t>, const data::Augmentation&, data::AugmentationKey,
              std::span<double> out) const override {
    std::ranges::fill(out, 0.0);
  }
  void gather_integers(const data::Field&, std::span<const int64_t>, int64_t, int64_t, int64_t,
                       std::span<int64_t> out) const override {
    std::ranges::fill(out, 0);
  }
  int64_t read_bytes() const override { return 0; }
  std::string place_of(int64_t row) const override { return std::to_string(row); }

 private:
  int64_t rows_;
  std::vector<data::Field> inputs_, targets_;
};

/// Rows that are streamed.
class StreamedRows : public ZeroRows {
 public:
  using ZeroRows::ZeroRows;
  data::StreamUse stream_use() const override { return {.window_bytes = 1000, .all_bytes = 5000, .block_bytes = 10}; }
};

train::ModelSpec linear_spec() {
  train::ModelSpec spec;
  spec.name = "linear";
  spec.graph = std::make_shared<graph::Graph>(graph::build_layer_list({{{"linear", 16}}}, {.shape = {64}}));
  spec.data.train = std::make_shared<ZeroRows>(1000, std::vector<int64_t>{64});
  spec.batch = 32;
  spec.grains = 4;
  spec.epochs = 3;
  spec.optimizer.kind = train::OptimizerSpec::Kind::kAdam;
  return spec;
}

TEST(CostModel, CountsStepsOperationsAndBytes) {
  const train::ModelSpec spec = linear_spec();
  const auto program = program::Program::compile(spec.graph);
  const Machine only_flops{.flops_per_second = 1, .bytes_per_second = 1e300, .instruction_seconds = 0};
  const ModelCost cost = predict_cost(spec, *program, only_flops);
  EXPECT_EQ(cost.step_count, 96) << "3 epochs of ceil(1000 / 32)";
  EXPECT_DOUBLE_EQ(cost.grain_seconds, 96 * 8 * 3 * 2.0 * 64 * 16) << "steps, rows, passes, multiply-adds";
  const int64_t range_bytes = int64_t{64 * 16 + 16} * 4;
  EXPECT_EQ(cost.memory.gradient_bytes, range_bytes);
  constexpr int64_t kGap = 64;  // behind every range, also the empty one of the graph's own buffers
  EXPECT_EQ(cost.memory.state_bytes, 3 * range_bytes + 4 * kGap) << "parameters and two moments";
  EXPECT_GT(cost.memory.transient_bytes, 256 * (64 + 16) * 4) << "at least an evaluation batch with its outputs";
  const Machine only_traffic{.flops_per_second = 1e300, .bytes_per_second = 1, .instruction_seconds = 0};
  EXPECT_DOUBLE_EQ(predict_cost(spec, *program, only_traffic).update_seconds, 96.0 * 7 * range_bytes);
}

TEST(CostModel, FollowsTheSpec) {
  train::ModelSpec spec = linear_spec();
  const auto program = program::Program::compile(spec.graph);
  const double seconds = predict_cost(spec, *program).grain_seconds;
  spec.data.test = std::make_shared<ZeroRows>(500, std::vector<int64_t>{64});
  EXPECT_GT(predict_cost(spec, *program).grain_seconds, seconds) << "evaluation costs";
  spec.drop_last = true;
  EXPECT_EQ(predict_cost(spec, *program).step_count, 93);
  spec.accumulate = 4;
  EXPECT_EQ(predict_cost(spec, *program).step_count, 24);
  spec.max_steps = 5;
  EXPECT_EQ(predict_cost(spec, *program).step_count, 5);
}

// Window, a block that comes in, and one for each of 2 lanes: for each part of the data set and each rank.
TEST(Placement, CountsStreamedDataOncePerRank) {
  train::ModelSpec spec = linear_spec();
  const auto program = program::Program::compile(spec.graph);
  const auto bytes_of = [&](size_t model_count, size_t rank_count) {
    const std::vector<ModelCost> costs(model_count, predict_cost(spec, *program));
    std::vector<int64_t> bytes;
    for (const RankLoad& rank : place(costs, equal_ranks(rank_count, /*lane_count=*/2)).ranks) {
      bytes.push_back(rank.bytes);
    }
    return bytes;
  };
  constexpr int64_t kStreamed = 1000 + 3 * 10;
  for (const size_t model_count : {1, 3, 4}) {
    for (const size_t rank_count : {1, 2}) {
      spec.data.train = std::make_shared<ZeroRows>(1000, std::vector<int64_t>{64});
      spec.data.test = spec.data.train;
      std::vector<int64_t> expected = bytes_of(model_count, rank_count);
      for (int64_t& bytes : expected) bytes += bytes > 0 ? 2 * kStreamed : 0;
      spec.data.train = std::make_shared<StreamedRows>(1000, std::vector<int64_t>{64});
      spec.data.test = std::make_shared<StreamedRows>(1000, std::vector<int64_t>{64});
      EXPECT_EQ(bytes_of(model_count, rank_count), expected) << model_count << " models on " << rank_count << " ranks";
    }
  }
}

TEST(Placement, RefusesAModelWhoseStreamedDataDoNotFit) {
  train::ModelSpec spec = linear_spec();
  const auto program = program::Program::compile(spec.graph);
  Cluster cluster = equal_ranks(1);
  cluster.ranks[0].memory_bytes = place({predict_cost(spec, *program)}, cluster).ranks[0].bytes;
  EXPECT_NO_THROW(place({predict_cost(spec, *program)}, cluster));
  spec.data.train = std::make_shared<StreamedRows>(1000, std::vector<int64_t>{64});
  try {
    place({predict_cost(spec, *program)}, cluster);
    FAIL() << "expected a PlacementError";
  } catch (const PlacementError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1020 for data that is streamed (`window`)"));
  }
}

TEST(CostModel, PredictsTheBytesThatATrialMeasures) {
  program::install_lane_allocator();
  at::get_num_threads();
  at::set_num_threads(1);
  constexpr double kUnpredicted = 0.5;  // gaps that first fit leaves in a region are measured only
  const std::vector<std::pair<std::string, std::vector<int64_t>>> networks = {
      {R"(["flatten", {"linear": 128}, "relu", {"linear": 10}])", {1, 28, 28}},
      {R"([{"lenet5": 10}])", {1, 28, 28}},
      {R"([{"resnet8": 10}])", {3, 32, 32}},
  };
  for (const auto& [layers, shape] : networks) {
    train::ModelSpec spec;
    spec.graph =
        std::make_shared<graph::Graph>(graph::build_layer_list(nlohmann::json::parse(layers), {.shape = shape}));
    spec.data.train = std::make_shared<ZeroRows>(1000, shape);
    spec.data.test = std::make_shared<ZeroRows>(1000, shape);
    spec.metrics = {program::Metric::kAccuracy};
    spec.batch = 128;
    spec.grains = 2;
    for (const int64_t evaluation_batch : {16, 512}) {
      spec.evaluation_batch = evaluation_batch;
      const auto program = program::Program::compile(spec.graph);
      const auto predicted = static_cast<double>(predict_cost(spec, *program).memory.transient_bytes);
      const auto measured = static_cast<double>(train::run_trial(spec, program).region_bytes);
      EXPECT_GE(predicted, kUnpredicted * measured) << layers << ", evaluation batch " << evaluation_batch;
      EXPECT_LE(predicted, 1.25 * measured) << layers << ", evaluation batch " << evaluation_batch;
    }
  }
}

TEST(CostModel, TakesATrialsMeasurements) {
  const train::ModelSpec spec = linear_spec();
  const auto program = program::Program::compile(spec.graph);
  const ModelCost cost = with_trial(predict_cost(spec, *program), spec,
                                    {.region_bytes = 12345, .step_seconds = 0.5, .evaluation_seconds = 0});
  EXPECT_EQ(cost.memory.transient_bytes, 12345);
  EXPECT_DOUBLE_EQ(cost.grain_seconds, 96 * 0.5);
}

}  // namespace
}  // namespace tutti::partition
