// Job files: what they become, and what is said of faults.
#include "launch/job.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cctype>
#include <string>
#include <vector>

#include "src/train/safetensors.h"
#include "tests/job_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The yaml block of the documentation's example.
std::string example() {
  const std::string page = job_file_documentation();
  const std::string open = "```yaml\n";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST_F(JobTest, ExampleOfTheDocumentationExpandsTo16Models) {
  const Job job = load(example());
  ASSERT_EQ(job.models.size(), 16u);
  EXPECT_EQ(job.models[0].name, "mlp-w16-adam-lr0.01");
  EXPECT_EQ(job.models[1].name, "mlp-w16-adam-lr0.003");
  EXPECT_EQ(job.models[2].name, "mlp-w16-sgd-lr0.01");
  EXPECT_EQ(job.models[11].name, "mlp-w128-sgd-lr0.003");
  EXPECT_EQ(job.models[15].name, "lenet-s4");
  EXPECT_EQ(job.run.out, "runs/digits");
  EXPECT_EQ(job.run.memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(job.run.lanes, 0);
  EXPECT_THAT(job.warnings, IsEmpty());
}

TEST_F(JobTest, ExampleModelsHaveTheirSettings) {
  const Job job = load(example());
  const train::ModelSpec& mlp = job.models[3];
  EXPECT_EQ(mlp.optimizer.kind, train::OptimizerSpec::Kind::kSgd);
  EXPECT_EQ(mlp.optimizer.lr, 0.003);
  EXPECT_EQ(mlp.batch, 64);
  EXPECT_EQ(mlp.epochs, 8);
  EXPECT_EQ(mlp.labels, (nlohmann::json{{"width", 16}, {"optimizer", "sgd"}, {"lr", 0.003}}));
  EXPECT_THAT(mlp.metrics, ElementsAre(program::Metric::kAccuracy));
  EXPECT_EQ(mlp.graph->parameter_count(), 784 * 16 + 16 + 16 * 10 + 10);
  const train::ModelSpec& lenet = job.models[14];
  EXPECT_EQ(lenet.seed, 3u);
  EXPECT_EQ(lenet.grains, 4);
  EXPECT_EQ(lenet.optimizer.kind, train::OptimizerSpec::Kind::kAdamW);
  EXPECT_EQ(lenet.optimizer.weight_decay, 0.01);
  EXPECT_EQ(lenet.schedule.kind, train::ScheduleSpec::Kind::kCosine);
  EXPECT_EQ(lenet.schedule.warmup_steps, 100);
  EXPECT_EQ(lenet.data.target, "y");
  EXPECT_THAT(lenet.data.inputs, ElementsAre("x"));
}

TEST_F(JobTest, VariantsWithEqualLayersShareOneGraph) {
  const Job job = load(example());
  EXPECT_EQ(job.models[0].graph, job.models[3].graph);
  EXPECT_NE(job.models[0].graph, job.models[4].graph);
  EXPECT_EQ(job.models[12].graph, job.models[15].graph);
}

TEST_F(JobTest, FaultsAreToldAllAtOnceWithLines) {
  const auto faults = faults_of(
      "run: {out: out, lane: 2}\ndata: {digits: {train: digits.h5}}\nmodels:\n  - name: m\n"
      "    layers: [flatten, {linear: 10}]\n    loss: cross_entropy\n"
      "    optimizer: {adam: {lrr: 1}}\n    batch: many\n");
  ASSERT_EQ(faults.size(), 3u) << ::testing::PrintToString(faults);
  EXPECT_THAT(faults[0], AllOf(HasSubstr("job.yaml:1: run: unknown key `lane`"), HasSubstr("did you mean `lanes`?")));
  EXPECT_THAT(faults, Contains(HasSubstr("job.yaml:7: models.0.optimizer.adam: unknown key `lrr`")));
  EXPECT_THAT(faults, Contains(HasSubstr("job.yaml:8: models.0.batch: expected whole number in [1, 1000000000]")));
}

TEST_F(JobTest, TimesOfARunHaveBounds) {
  for (const char* value : {"0", "1e-9", "0.09", "1e7", "1e300", ".inf", ".nan", "-1"}) {
    EXPECT_THAT(faults_of(with(std::string("run: {out: out, deadline: ") + value + "}")),
                ElementsAre(HasSubstr("run.deadline: expected number in [0.1, 1000000]")))
        << value;
  }
  for (const char* value : {"0", "1e-9", "1e7", "1e300", ".inf", ".nan", "-1"}) {
    EXPECT_THAT(faults_of(with(std::string("run: {out: out, visit: ") + value + "}")),
                ElementsAre(HasSubstr("run.visit: expected number in [0.01, 1000000]")))
        << value;
  }
  EXPECT_EQ(load(with("run: {out: out, deadline: 0.1}")).run.deadline_seconds, 0.1);
  EXPECT_EQ(load(with("run: {out: out, deadline: 1e6}")).run.deadline_seconds, 1e6);
  EXPECT_EQ(load(with("run: {out: out, visit: 0.01}")).run.visit_milliseconds, 0.01);
}

TEST_F(JobTest, FaultOfASweptBlockIsToldOnce) {
  EXPECT_EQ(faults_of(with("name: m${seed}\n    sweep: {seed: [1, 2, 3]}\n    epoch: 1")).size(), 1u);
}

TEST_F(JobTest, FaultsEndAfterTwenty) {
  std::string models = "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n";
  for (int i = 0; i < 50; ++i)
    models += "  - {name: m" + std::to_string(i) + ", loss: x, optimizer: sgd, layers: [flatten, {linear: 10}]}\n";
  const auto faults = faults_of(models);
  ASSERT_EQ(faults.size(), 21u);
  EXPECT_THAT(faults.back(), HasSubstr("stopped after 20 faults"));
}

TEST_F(JobTest, MissingFileFolderAndPipeAreNamed) {
  const auto message = [&](const std::filesystem::path& file) {
    return data::message_of<JobError>([&] { load_job(file, {}, open_fields); });
  };
  EXPECT_THAT(message(folder_ / "none.yaml"), AllOf(HasSubstr("none.yaml: cannot open"), HasSubstr("No such file")));
  EXPECT_THAT(message(folder_.path()), HasSubstr("expected a job file, found a folder; name the file in it"));
  ASSERT_EQ(mkfifo((folder_ / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_THAT(message(folder_ / "pipe.yaml"), HasSubstr("found a pipe; write the text to a regular file first"));
  EXPECT_THAT(message("/dev/null"), HasSubstr("expected a job file, found a device"));
  data::write_file(folder_ / "empty.yaml", "# nothing\n");
  EXPECT_THAT(message(folder_ / "empty.yaml"), HasSubstr("found an empty file"));
  data::write_file(folder_ / "large.yaml", std::string((16 << 20) + 1, '#'));
  EXPECT_THAT(message(folder_ / "large.yaml"), HasSubstr("at most 16777216 bytes"));
}

TEST_F(JobTest, MissingShardOfARealDataSetIsAFaultOfItsLine) {
  data::write_file(folder_ / "job.yaml", with("batch: 1"));
  const std::string message = data::message_of<JobError>([&] { load_job(folder_ / "job.yaml", {}); });
  EXPECT_THAT(message, AllOf(HasSubstr("job.yaml:2: data.digits.train"), HasSubstr((folder_ / "digits.h5").string())));
}

TEST_F(JobTest, DefaultsArePyTorchs) {
  const train::OptimizerSpec adamw = load(with("optimizer: adamw")).models[0].optimizer;
  EXPECT_EQ(adamw.lr, 1e-3);
  EXPECT_EQ(adamw.weight_decay, 1e-2);
  EXPECT_EQ(adamw.beta1, 0.9);
  EXPECT_EQ(adamw.beta2, 0.999);
  EXPECT_EQ(adamw.eps, 1e-8);
  EXPECT_EQ(load(with("optimizer: rmsprop")).models[0].optimizer.lr, 1e-2);
  EXPECT_EQ(load(with("optimizer: adagrad")).models[0].optimizer.eps, 1e-10);
  EXPECT_EQ(load(with("optimizer: sgd")).models[0].optimizer.lr, 1e-3);
}

TEST_F(JobTest, EveryKeyOfAModelIsRead) {
  data::write_file(folder_ / "first.safetensors", "weights");
  const train::ModelSpec model = load(with(R"(loss: {cross_entropy: {label_smoothing: 0.1, ignore_index: 9}}
    metrics: [loss, accuracy, top5, macro_f1]
    schedule: {one_cycle: {max_lr: 0.5, anneal: linear, three_phase: true, per: epoch, warmup_steps: 7, warmup_start: 0.1,
                           cycle_momentum: false}}
    clip: {norm: 1, value: 0.5}
    parameters: [{match: biases, weight_decay: 0}, {match: "1.weight", frozen: true, lr_factor: 2}]
    batch: 128
    grains: 8
    accumulate: 2
    epochs: 3
    steps: 50
    drop_last: true
    order: sequential
    evaluate_every: 2
    evaluation_batch: 100
    log_every: 1
    init: first.safetensors
    precision: float64
    engine: island
    early_stopping: {metric: accuracy, patience: 3, min_delta: 1e-3}
    checkpoint: {every_steps: 10, every_epochs: 2, every_minutes: 0, keep: 3, best: accuracy}
    seed: 11
    ranks: 2)"))
                                     .models.at(0);
  EXPECT_EQ(model.loss.label_smoothing, 0.1);
  EXPECT_EQ(model.loss.ignore_index, 9);
  EXPECT_EQ(model.metrics.size(), 3u);
  EXPECT_EQ(model.schedule.kind, train::ScheduleSpec::Kind::kOneCycle);
  EXPECT_EQ(model.schedule.max_lr, 0.5);
  EXPECT_FALSE(model.schedule.cosine_anneal);
  EXPECT_TRUE(model.schedule.three_phase);
  EXPECT_TRUE(model.schedule.per_epoch);
  EXPECT_EQ(model.schedule.warmup_steps, 7);
  EXPECT_EQ(model.schedule.warmup_start, 0.1);
  EXPECT_EQ(model.clip.norm, 1.0);
  EXPECT_EQ(model.clip.value, 0.5);
  ASSERT_EQ(model.parameter_rules.size(), 2u);
  EXPECT_EQ(model.parameter_rules[0].weight_decay, 0.0);
  EXPECT_FALSE(model.parameter_rules[0].lr_factor);
  EXPECT_TRUE(model.parameter_rules[1].frozen);
  EXPECT_EQ(model.batch, 128);
  EXPECT_EQ(model.grains, 8);
  EXPECT_EQ(model.accumulate, 2);
  EXPECT_EQ(model.epochs, 3);
  EXPECT_EQ(model.max_steps, 50);
  EXPECT_TRUE(model.drop_last);
  EXPECT_EQ(model.order, data::SampleOrder::Kind::kSequential);
  EXPECT_EQ(model.evaluate_every, 2);
  EXPECT_EQ(model.evaluation_batch, 100);
  EXPECT_EQ(model.log_every, 1);
  EXPECT_EQ(model.init_file, (folder_ / "first.safetensors").string());
  EXPECT_TRUE(model.double_precision);
  EXPECT_TRUE(model.island);
  ASSERT_TRUE(model.early_stopping);
  EXPECT_EQ(model.early_stopping->metric, "accuracy");
  EXPECT_EQ(model.early_stopping->patience, 3);
  EXPECT_EQ(model.early_stopping->min_delta, 1e-3);
  EXPECT_EQ(model.checkpoint.every_steps, 10);
  EXPECT_EQ(model.checkpoint.every_epochs, 2);
  EXPECT_EQ(model.checkpoint.every_minutes, 0);
  EXPECT_EQ(model.checkpoint.keep, 3);
  EXPECT_EQ(model.checkpoint.best, "accuracy");
  EXPECT_EQ(model.seed, 11u);
  EXPECT_EQ(model.ranks, 2);
}

TEST_F(JobTest, EveryKeyOfADataSetIsRead) {
  data::ReadOptions seen;
  std::vector<std::string> paths;
  data::write_file(folder_ / "job.yaml",
                   with("batch: 1",
                        "digits: {train: [a-*.h5, /b.h5], held_out: 0.25, seed: 5, augment: {flip: true, crop: 4, "
                        "noise: 0.5}, normalise: false, access: stream, window: 1MB, verify_checksums: false}"));
  const Job job =
      load_job(folder_ / "job.yaml", {}, [&](const std::vector<std::string>& opened, const data::ReadOptions& options) {
        seen = options;
        paths = opened;
        return open_fields(opened, options);
      });
  EXPECT_THAT(paths, ElementsAre((folder_ / "a-*.h5").string(), "/b.h5"));
  EXPECT_EQ(seen.access, data::ReadOptions::Access::kStream);
  EXPECT_EQ(seen.window_bytes, 1'000'000);
  EXPECT_FALSE(seen.verify_checksums);
  const train::ModelData& data = job.models[0].data;
  EXPECT_EQ(data.held_out, 0.25);
  EXPECT_EQ(data.validation, data.train);
  EXPECT_EQ(data.seed, 5u);
  EXPECT_TRUE(data.augmentation.flip);
  EXPECT_EQ(data.augmentation.crop, 4);
  EXPECT_EQ(data.augmentation.noise, 0.5);
  EXPECT_FALSE(data.normalise);
}

TEST_F(JobTest, StepsAloneGiveTheEpochsTheyNeed) {
  // 9,000 rows in batches of 100: 90 batches an epoch.
  EXPECT_EQ(load(with("batch: 100\n    steps: 181")).models[0].epochs, 3);
  EXPECT_EQ(load(with("batch: 100\n    steps: 181\n    epochs: 2")).models[0].epochs, 2);
}

TEST_F(JobTest, ZooEntryIsShortForALayer) {
  const Job zoo = load(
      "run: {out: o}\ndata: {digits: {train: digits.h5, test: test.h5}}\n"
      "models: [{name: m, loss: cross_entropy, optimizer: sgd, zoo: lenet5}]\n");
  const Job layers = load(with("layers: [{lenet5: 10}]"));
  EXPECT_EQ(zoo.models[0].graph->signature(), layers.models[0].graph->signature());
}

TEST_F(JobTest, ModelsZooGoesBeforeTheDefaultLayers) {
  const Job job = load(
      "run: {out: o}\ndata: {d: {train: digits.h5}}\n"
      "defaults: {loss: cross_entropy, optimizer: sgd, layers: [flatten, {linear: 10}]}\n"
      "models: [{name: a}, {name: b, zoo: lenet5}]\n");
  EXPECT_GT(job.models[1].graph->parameter_count(), job.models[0].graph->parameter_count());
}

TEST_F(JobTest, EmbeddingReadsIndices) {
  const Job job =
      load(with("layers: [{embedding: {count: 50, dim: 4}}, flatten, {linear: 10}]", "words: {train: words.h5}"));
  const graph::Graph& graph = *job.models[0].graph;
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[0])].type, at::kLong);
}

TEST_F(JobTest, ScalarAndOneElementTargetsFitOneOutput) {
  EXPECT_NO_THROW(
      load("run: {out: o}\ndata: {houses: {train: houses.h5}}\nmodels:\n"
           "  - {name: m, loss: huber, optimizer: sgd, layers: [{linear: 1}], metrics: [mae]}\n"));
}

TEST_F(JobTest, OnePositiveWeightServesAllOutputs) {
  EXPECT_NO_THROW(
      load("run: {out: o}\ndata: {houses: {train: houses.h5}}\nmodels:\n  - {name: m, optimizer: sgd, "
           "layers: [{linear: 1}], loss: {bce_with_logits: {positive_weights: [3]}}}\n"));
}

TEST_F(JobTest, BatchesBeyondTheDataArePlannedAsTheRowsThereAre) {
  const Job job = load(with("batch: 1000000\n    evaluation_batch: 1000000\n    accumulate: 9"));
  EXPECT_EQ(job.models[0].batch, 9000);
  EXPECT_EQ(job.models[0].evaluation_batch, 9000);
  EXPECT_EQ(job.models[0].accumulate, 1);
}

TEST_F(JobTest, FirstWeightsThatNoLayerTakesAreWarnedAbout) {
  const at::Tensor weight = at::zeros({10, 784}), bias = at::zeros({10});
  train::write_safetensors(folder_ / "w.safetensors", {{"1.weight", weight}, {"1.bias", bias}, {"head.bias", bias}});
  const Job job = load(with("name: m-${seed}\n    sweep: {seed: [1, 2]}\n    init: w.safetensors"));
  EXPECT_THAT(job.warnings, ElementsAre(AllOf(HasSubstr("job.yaml:6: models.0.init"), HasSubstr("no head.bias"),
                                              HasSubstr("1 of the file's 3"))));
}

TEST_F(JobTest, FirstWeightsThatAreNoRegularFileAreRefused) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(faults_of(with("init: pipe")), ElementsAre(HasSubstr("expected a safetensors file, found a pipe at")));
}

TEST_F(JobTest, WarningThatVariantsShareIsGivenOnce) {
  std::string seeds = "1";
  for (int seed = 2; seed <= 30; ++seed) seeds += fmt::format(", {}", seed);
  const Job job = load(with("name: m-${seed}\n    batch: 10000\n    sweep: {seed: [" + seeds + "]}"));
  EXPECT_THAT(job.warnings,
              ElementsAre(AllOf(HasSubstr("models.0.batch: a batch of 10000 is more than the 9000 training rows"),
                                HasSubstr("(models m-1, m-2, m-3 and 27 more)"))));
}

TEST_F(JobTest, ShardsInTwoPlacesAreWarnedAbout) {
  for (const char* name : {"a.h5", "b.h5"}) data::write_shard(folder_ / name, {.first_row = 0, .row_count = 64});
  data::write_file(folder_ / "job.yaml", with("batch: 8", "d: {train: [a.h5, b.h5, b.h5, ./b.h5], test: a.h5}"));
  const Job job = load_job(folder_ / "job.yaml", {});
  EXPECT_THAT(job.warnings,
              ElementsAre(AllOf(HasSubstr("job.yaml:2: data.d.train"), HasSubstr("b.h5 is named twice and "
                                                                                 "read once")),
                          AllOf(HasSubstr("job.yaml:2: data.d.train"), HasSubstr("read twice")),
                          AllOf(HasSubstr("job.yaml:2: data.d.test"), HasSubstr("a.h5 is also a shard of "
                                                                                "`train`"))));
}

TEST_F(JobTest, WindowsThatShuffledRowsDoNotFitInAreWarnedAboutOnce) {
  data::write_shard(folder_ / "a.h5", {.row_count = 3 * 4096});
  const auto warnings_of = [&](const std::string& window, const std::string& order) {
    const std::string data = "d: {train: a.h5, access: stream, window: " + window + "}";
    const std::string other =
        "  - {name: n, layers: [flatten, {linear: 10}], loss: cross_entropy, optimizer: sgd, order: ";
    data::write_file(folder_ / "job.yaml", with("order: " + order, data) + other + order + "}\n");
    return load_job(folder_ / "job.yaml", {}).warnings;
  };
  // 3 blocks of 24 bytes a picture and 4 a label.
  EXPECT_THAT(warnings_of("344063", "shuffled"),
              ElementsAre(AllOf(HasSubstr("data.d.window: 344063 bytes"), HasSubstr("344064 bytes of blocks"),
                                HasSubstr("set `window: 1MiB`"))));
  EXPECT_THAT(warnings_of("344064", "shuffled"), IsEmpty());
  EXPECT_THAT(warnings_of("1", "sequential"), IsEmpty());
}

TEST_F(JobTest, AccumulationGoesAsFarAsTheMasksOfDropout) {
  EXPECT_THAT(faults_of(with("accumulate: 65536")), IsEmpty());
}

TEST_F(JobTest, SettingsChangeTheFileBeforeItIsChecked) {
  const Job job =
      load(example(), {"models.0.epochs=5", "models.lenet-s${seed}.batch=32", "models.lenet-s2.optimizer.adamw.lr=0.5",
                       "models.*.log_every=1", "run.out=other", "defaults.evaluation_batch=10",
                       "data.digits.held_out=0.1", "models.mlp-w16-sgd-lr0.01.epochs=7"});
  EXPECT_EQ(job.models[0].epochs, 5);
  EXPECT_EQ(job.models[2].name, "mlp-w16-sgd-lr0.01");
  EXPECT_EQ(job.models[2].epochs, 7);
  EXPECT_EQ(job.models[3].epochs, 5);
  EXPECT_EQ(job.models[12].epochs, 8);
  EXPECT_EQ(job.models[12].batch, 32);
  EXPECT_EQ(job.models[13].optimizer.lr, 0.5);
  EXPECT_EQ(job.models[13].optimizer.weight_decay, 0.01);
  EXPECT_EQ(job.models[14].optimizer.lr, 0.004);
  EXPECT_EQ(job.models[9].log_every, 1);
  EXPECT_EQ(job.run.out, "other");
  EXPECT_EQ(job.models[9].evaluation_batch, 10);
  EXPECT_EQ(job.models[9].data.held_out, 0.1);
}

TEST_F(JobTest, SettingsReachIntoShortFormsListsAndSweeps) {
  EXPECT_EQ(load(with("optimizer: sgd"), {"models.m.optimizer.sgd.momentum=0.9"}).models[0].optimizer.momentum, 0.9);
  EXPECT_EQ(load(with("optimizer: sgd"), {"models.0.optimizer=adam"}).models[0].optimizer.kind,
            train::OptimizerSpec::Kind::kAdam);
  const Job wide = load(with("optimizer: sgd"), {"models.0.layers.1.linear=20"});
  EXPECT_EQ(wide.models[0].graph->parameter_count(), 785 * 20);
  EXPECT_EQ(load(with("name: m${seed}\n    sweep: {seed: [1]}"), {"models.0.sweep.seed=[1, 2, 3]"}).models.size(), 3u);
}

TEST_F(JobTest, WrongSettingsAreNamed) {
  const auto only = [&](const std::string& setting) {
    const auto faults = faults_of(example(), {setting});
    EXPECT_EQ(faults.size(), 1u) << ::testing::PrintToString(faults);
    return faults.empty() ? "" : faults.front();
  };
  EXPECT_THAT(only("models.0.epoch=5"),
              AllOf(HasSubstr("--set models.0.epoch=5: models.0: unknown key `epoch`"), HasSubstr("`epochs`?")));
  EXPECT_THAT(only("models.lenet-s2.epoch=5"), AllOf(HasSubstr("unknown key `epoch`"), HasSubstr("`epochs`?")));
  EXPECT_THAT(only("models.lenet-s9.epochs=5"), AllOf(HasSubstr("no model `lenet-s9`"), HasSubstr("lenet-s")));
  EXPECT_THAT(only("run.ou=5"), HasSubstr("unknown key `ou`"));
  EXPECT_THAT(only("rn.out=5"), AllOf(HasSubstr("unknown key `rn`"), HasSubstr("`run`?")));
  EXPECT_THAT(only("models.1.batch=none"),
              HasSubstr("--set models.1.batch=none: models.1.batch: expected whole number"));
  EXPECT_THAT(only("models.1.layers.99=relu"), HasSubstr("expected an index from 0 to 10, found `99`"));
  EXPECT_THAT(only("epochs"), HasSubstr("expected KEY=VALUE"));
  std::string deep = "a";
  for (int level = 0; level < 50'000; ++level) deep += ".a";
  EXPECT_THAT(only(deep + "=1"), HasSubstr("expected a KEY of at most 64 levels"));
  EXPECT_THAT(only("models.0.epochs=[1"), HasSubstr("not YAML"));
}

TEST_F(JobTest, OutOfTheCommandLineGoesBeforeTheFiles) {
  data::write_file(folder_ / "job.yaml", with("run: {}"));
  const Job job = load_job(folder_ / "job.yaml", {.settings = {}, .out = "here", .resume = true}, open_fields);
  EXPECT_EQ(job.run.out, "here");
  EXPECT_TRUE(job.run.resume);
}

TEST_F(JobTest, HashCoversWhatChangesNumbersAndNothingElse) {
  const uint64_t hash = load(with("batch: 64")).hash;
  for (const char* same :
       {"models.0.log_every=1", "models.0.ranks=2", "models.0.checkpoint={keep: 4}", "run.lanes=3", "run.memory=1GiB",
        "models.0.seed=0", "models.0.optimizer={sgd: {lr: 1e-3}}", "models.0.schedule=constant"}) {
    EXPECT_EQ(load(with("batch: 64"), {same}).hash, hash) << same;
  }
  for (const char* other : {"models.0.seed=1",
                            "models.0.batch=32",
                            "models.0.grains=2",
                            "models.0.accumulate=2",
                            "models.0.epochs=2",
                            "models.0.optimizer={sgd: {lr: 2e-3}}",
                            "models.0.schedule=cosine",
                            "models.0.clip={norm: 1}",
                            "models.0.loss={cross_entropy: {label_smoothing: 0.1}}",
                            "models.0.order=sequential",
                            "models.0.precision=float64",
                            "models.0.engine=island",
                            "data.digits.seed=1",
                            "data.digits.held_out=0.1",
                            "data.digits.augment={flip: true}",
                            "data.digits.normalise=false",
                            "run.reduction=fast",
                            "models.0.parameters=[{match: biases, frozen: true}]",
                            "models.0.early_stopping={}",
                            "models.0.layers=[flatten, {linear: 11}]",
                            "models.0.name=other",
                            "models.0.drop_last=true"}) {
    EXPECT_NE(load(with("batch: 64"), {other}).hash, hash) << other;
  }
}

TEST_F(JobTest, HashCoversTheBytesOfFirstWeights) {
  data::write_file(folder_ / "w.safetensors", "one");
  const uint64_t hash = load(with("init: w.safetensors")).hash;
  EXPECT_EQ(load(with("init: w.safetensors")).hash, hash);
  data::write_file(folder_ / "w.safetensors", "two");
  EXPECT_NE(load(with("init: w.safetensors")).hash, hash);
}

TEST_F(JobTest, UnusedDataSetsAndBatchesBeyondTheDataAreWarnedAbout) {
  const Job job = load(with("data: a\n    batch: 10000", "a: {train: digits.h5}, b: {train: digits.h5}"));
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("a batch of 10000 is more than the 9000 training rows (model m)"),
                                        HasSubstr("data.b")));
}

TEST_F(JobTest, AnyWordOfTheExampleReplacedLoadsOrIsAJobError) {
  const std::string text = example();
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  int64_t refused = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == begin) {
      ++begin;
      continue;
    }
    for (const char* word : {"", "null", "[]", "{}", "-1", "0", "99999999999999999999", "[1, {a: 2}]", "*x", "'"}) {
      std::string changed = text;
      changed.replace(begin, end - begin, word);
      try {
        load(changed);
      } catch (const JobError& error) {
        ++refused;
        EXPECT_THAT(error.what(), HasSubstr("job.yaml")) << changed;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what() << "\n" << changed;
      }
    }
    begin = end;
  }
  EXPECT_GT(refused, 500);
}

TEST_F(JobTest, TenThousandModelsLoad) {
  const Job job = load(
      with("name: m-${seed}-${b}\n    sweep: {seed: {int: [1, 1000000]}, b: {uniform: [0, 1]}}\n    sample: 10000"));
  EXPECT_EQ(job.models.size(), 10000u);
}

}  // namespace
}  // namespace tutti::launch
