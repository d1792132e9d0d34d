// Bad inputs of job files: one fault each, with its line and cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/job_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

/// A text with one fault, its line, and words that the message must have.
struct BadInput {
  std::string what;
  std::string text;
  int line;
  std::vector<std::string> words;
};

const std::string kZoo =
    "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n  - {name: m, loss: cross_entropy, optimizer: sgd,\n"
    "     zoo: resnet21}\n";
const std::string kTwoModels = with("sweep: {seed: [1, 2]}");

/// A job of one model from an archive in tests/data/pt2.
std::string exported(const std::string& archive, const std::string& keys = "epochs: 1") {
  return "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n  - {name: m, loss: cross_entropy, optimizer: sgd, "
         "graph: " TUTTI_TEST_DATA "/pt2/" +
         archive + ", " + keys + "}\n";
}

const std::vector<BadInput> kBadInputs{
    {"UnknownTopKey", "model: []\n" + with("batch: 1"), 1, {"unknown key `model`", "did you mean `models`?"}},
    {"UnknownRunKey", with("run: {out: out, memry: 1}"), 1, {"run: unknown key `memry`", "`memory`"}},
    {"UnknownDataKey",
     with("batch: 1", "digits: {train: digits.h5, tset: x}"),
     2,
     {"data.digits: unknown key `tset`", "`test`"}},
    {"UnknownModelKey", with("epoch: 5"), 8, {"models.0: unknown key `epoch`", "did you mean `epochs`?"}},
    {"UnknownOptimizerKey", with("optimizer: {adam: {lrr: 1}}"), 7, {"optimizer.adam: unknown key `lrr`", "`lr`"}},
    {"KeyOfAnotherOptimizer", with("optimizer: {adam: {nesterov: true}}"), 7, {"unknown key `nesterov`", "betas"}},
    {"UnknownOptimizer", with("optimizer: adamm"), 7, {"unknown optimizer `adamm`", "sgd", "did you mean `adam`?"}},
    {"TwoOptimizers", with("optimizer: {adam: {}, sgd: {}}"), 7, {"expected the name of one optimizer", "2 keys"}},
    {"OptimizerAsList", with("optimizer: [adam]"), 7, {"optimizer", "a list"}},
    {"UnknownSchedule", with("schedule: cosin"), 8, {"unknown schedule `cosin`", "`cosine`"}},
    {"UnknownScheduleKey",
     with("schedule: {cosine: {gamma: 1}}"),
     8,
     {"schedule.cosine: unknown key `gamma`", "total"}},
    {"ScheduleKeyMissing", with("schedule: step"), 8, {"missing key `step_size`", "whole number in [1, 1000000000]"}},
    {"MilestonesFall",
     with("schedule: {multi_step: {milestones: [5, 3]}}"),
     8,
     {"milestones", "greater than the one before"}},
    {"UnknownLoss", with("loss: crossentropy"), 6, {"unknown loss `crossentropy`", "`cross_entropy`"}},
    {"UnknownMetric", with("metrics: [acuracy]"), 8, {"metrics", "acuracy", "accuracy"}},
    {"UnknownChoice", with("precision: float16"), 8, {"precision", "float32, float64", "found `float16`"}},
    {"UnknownLayer", with("layers: [flaten, {linear: 10}]"), 5, {"layers.0", "flaten", "flatten"}},
    {"UnknownLayerKey",
     with("layers: [{conv2d: {out: 8, kernal: 5}}, flatten, {linear: 10}]"),
     5,
     {"layers.0", "kernal", "kernel"}},
    {"UnknownZooLayer", with("layers: [{resnet21: {}}]"), 5, {"resnet21", "resnet20"}},
    {"UnknownZooEntry", kZoo, 5, {"zoo.0", "resnet21", "resnet20"}},
    {"UnknownDataSet", with("data: mnist"), 8, {"no data set `mnist`", "expected `digits`"}},
    {"UnknownInputField", with("input: z"), 8, {"no field `z`", "`x`"}},
    {"UnknownTargetField", with("target: x"), 8, {"no field `x`", "`y`"}},
    {"TargetNotChosen", with("input: x", "pairs: {train: pairs.h5}"), 4, {"target", "2 of them", "fine, y"}},
    {"WordForInteger",
     with("batch: many"),
     8,
     {"models.0.batch", "expected whole number in [1, 1000000000]", "found `many`"}},
    {"FractionForInteger", with("epochs: 1.5"), 8, {"epochs", "whole number", "found `1.5`"}},
    {"QuotedInteger", with("batch: '64'"), 8, {"batch", "whole number", "the text \"64\""}},
    {"HugeInteger", with("batch: 99999999999999999999"), 8, {"batch", "whole number"}},
    {"YesForTrue", with("drop_last: yes"), 8, {"drop_last", "true or false", "found `yes`"}},
    {"NotANumber", with("optimizer: {sgd: {lr: .nan}}"), 7, {"lr", "expected number", "found `.nan`"}},
    {"ListForInteger", with("batch: [1, 2]"), 8, {"batch", "whole number", "a list"}},
    {"NothingForInteger", with("batch:"), 8, {"batch", "whole number", "nothing"}},
    {"BadSize", with("run: {out: out, memory: 8GiBs}"), 1, {"run.memory", "8GiB", "found `8GiBs`"}},
    {"NegativeBatch", with("batch: -4"), 8, {"batch", "in [1, 1000000000]", "found `-4`"}},
    {"ZeroBatch", with("batch: 0"), 8, {"batch", "in [1, 1000000000]", "found `0`"}},
    {"NegativeRate", with("optimizer: {sgd: {lr: -0.1}}"), 7, {"lr", "at least 0", "-0.1"}},
    {"GrainsNoPowerOfTwo", with("grains: 3"), 8, {"grains", "power of two", "found 3"}},
    {"GrainsAboveBatch", with("grains: 64"), 8, {"grains", "at most the batch, 32", "found 64"}},
    {"GrainsAboveTheRows", with("grains: 16384\n    batch: 20000"), 8, {"grains", "9000 training rows", "found 16384"}},
    {"GrainsWithoutEnd", with("grains: 4611686018427387904"), 8, {"grains", "in [1, 65536]"}},
    {"AccumulateBeyondTheMasks", with("accumulate: 65537"), 8, {"accumulate", "in [1, 65536]", "found `65537`"}},
    {"AccumulateWithoutEnd",
     with("accumulate: 9223372036854775807"),
     8,
     {"accumulate", "whole number in [1, 65536]", "9223372036854775807"}},
    {"EpochsWithoutEnd", with("epochs: 1000000000000000000"), 8, {"epochs", "in [1, 1000000000]"}},
    {"RanksWithoutEnd", with("ranks: 65537"), 8, {"ranks", "in [1, 65536]"}},
    {"HeldOutOfNothing",
     with("batch: 1", "digits: {train: digits.h5, held_out: 0.00001}"),
     2,
     {"data.digits.held_out", "found 0 of 9000"}},
    {"HeldOutOfEverything",
     with("batch: 1", "digits: {train: digits.h5, held_out: 0.99999}"),
     2,
     {"data.digits.held_out", "found 9000 of 9000"}},
    {"CropOfTheWholeImage",
     with("batch: 1", "digits: {train: digits.h5, augment: {crop: 28}}"),
     4,
     {"`augment` of data set `digits`", "crop below the image's 28 pixels", "uint8 [1, 28, 28]"}},
    {"FlipOfNoImage",
     "run: {out: o}\ndata: {houses: {train: houses.h5, augment: {flip: true}}}\nmodels:\n  - {name: m, loss: mse, "
     "optimizer: sgd, layers: [{linear: 1}]}\n",
     4,
     {"`augment` of data set `houses`", "two dimensions", "float32 [8]"}},
    {"NoiseOnIndices",
     with("layers: [{embedding: {count: 50, dim: 4}}, flatten, {linear: 10}]",
          "words: {train: words.h5, augment: {noise: 0.1}}"),
     4,
     {"`augment` of data set `words`", "embedding", "int32 [16]"}},
    {"WholeHeldOut",
     with("batch: 1", "digits: {train: digits.h5, held_out: 1}"),
     2,
     {"held_out", "in [0, 1)", "found `1`"}},
    {"HeldOutAndValidation",
     with("batch: 1", "digits: {train: digits.h5, validation: test.h5, held_out: 0.1}"),
     2,
     {"held_out", "found both"}},
    {"BetasOfWrongLength", with("optimizer: {adam: {betas: [0.9]}}"), 7, {"betas", "expected two numbers", "found 1"}},
    {"NesterovWithoutMomentum", with("optimizer: {sgd: {nesterov: true}}"), 7, {"nesterov", "momentum greater than 0"}},
    {"ClipOfNothing", with("clip: {}"), 8, {"clip", "`norm`, `value` or both"}},
    {"ClipByZero", with("clip: {norm: 0}"), 8, {"clip.norm", "greater than 0"}},
    {"MissingOut", with("run: {}"), 1, {"run.out", "--out DIR"}},
    {"MissingLayers",
     "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n  - {name: m, loss: mse, optimizer: sgd}\n",
     4,
     {"expected one of `layers`, `zoo` and `graph`, found none"}},
    {"LayersAndZoo", with("zoo: lenet5"), 8, {"expected one of `layers`, `zoo` and `graph`, found several"}},
    {"LayersAndGraph", with("graph: m.pt2"), 8, {"expected one of `layers`, `zoo` and `graph`, found several"}},
    {"LayersWithOutput", with("output: y"), 8, {"output", "goes with `graph` alone"}},
    {"GraphIsAbsent", exported("absent.pt2"), 4, {"models.0.graph", "absent.pt2"}},
    {"GraphIsNoArchive", exported("mlp.safetensors"), 4, {"models.0.graph", "mlp.safetensors", "torch.export.save"}},
    {"GraphOfSeveralOutputs", exported("digits.pt2"), 4, {"output", "linear_2, mean", "0 to 1", "found none"}},
    {"GraphWithoutThatOutput", exported("digits.pt2", "output: 2"), 4, {"linear_2, mean", "found 2"}},
    {"GraphOfOtherRows", exported("mlp.pt2"), 4, {"input `input`", "rows of shape [4]", "found [1, 28, 28] in `x`"}},
    {"GraphOfTwoInputs", exported("two_inputs.pt2"), 4, {"expected a field", "`inputs`", "x, extra"}},
    {"GraphWithTooManyFields", exported("digits.pt2", "output: 0, inputs: [x, x]"), 4, {"1 inputs (x)", "found 2"}},
    {"GraphOfFixedBatch", exported("fixed_digits.pt2", "output: 0, batch: 16"), 4,
     {"batch", "runs 32 rows at a time", "expected 32 for 1 grains, found 16", "dynamic batch"}},
    {"GraphOfFixedBatchWithShortBatch", exported("fixed_digits.pt2", "output: 0"), 4,
     {"drop_last", "last batch of 9000 training rows is short"}},
    {"MissingOptimizer",
     "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n  - {name: m, loss: cross_entropy, layers: [flatten, "
     "{linear: 10}]}\n",
     4,
     {"models.0: missing key `optimizer`"}},
    {"MissingModels", "run: {out: o}\ndata: {d: {train: digits.h5}}\n", 1, {"missing key `models`"}},
    {"NoModels", "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels: []\n", 3, {"models", "an empty one"}},
    {"ModelIsText",
     "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels: [m]\n",
     3,
     {"models.0", "expected a mapping", "found `m`"}},
    {"DataIsText",
     "run: {out: o}\ndata: digits\nmodels: [{name: m, loss: mse, optimizer: sgd, layers: [relu]}]\n",
     2,
     {"data", "found `digits`"}},
    {"MissingShard", with("batch: 1", "digits: {train: missing.h5}"), 2, {"data.digits.train", "missing.h5"}},
    {"TestFieldsDiffer",
     with("batch: 1", "digits: {train: digits.h5, test: houses.h5}"),
     2,
     {"data.digits.test", "[1, 28, 28]", "[8]"}},
    {"FewerOutputsThanClasses",
     with("layers: [flatten, {linear: 9}]"),
     5,
     {"layers", "9 outputs", "`y` has 10 classes"}},
    {"WrongShapeBetweenLayers",
     with("layers: [flatten, {conv2d: {out: 8, kernel: 3}}, {linear: 10}]"),
     5,
     {"layers.1", "conv2d", "784"}},
    {"CrossEntropyOfNumbers",
     with("layers: [{linear: 1}]", "houses: {train: houses.h5}"),
     6,
     {"cross_entropy expects an integer target", "float32", "price"}},
    {"MseOfClasses", with("loss: mse"), 6, {"outputs have [10] per row", "`y` has []"}},
    {"AccuracyOfNumbers",
     "run: {out: o}\ndata: {houses: {train: houses.h5}}\nmodels:\n  - {name: m, loss: mse, optimizer: sgd, layers: "
     "[{linear: 1}],\n     metrics: [accuracy]}\n",
     5,
     {"accuracy needs loss cross_entropy"}},
    {"ClassWeightsOfWrongLength",
     with("loss: {cross_entropy: {class_weights: [1, 2]}}"),
     6,
     {"10 class_weights", "found 2"}},
    {"ClassWeightsOfZero",
     with("loss: {cross_entropy: {class_weights: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}"),
     6,
     {"class_weights", "greater than 0"}},
    {"PositiveWeightsOfWrongLength",
     "run: {out: o}\ndata: {houses: {train: houses.h5}}\nmodels:\n  - {name: m, optimizer: sgd, layers: [{linear: "
     "1}],\n"
     "     loss: {bce_with_logits: {positive_weights: [1, 2]}}}\n",
     5,
     {"positive_weights", "for all outputs or one per output", "found 2"}},
    {"LayerOfTooManyOutputs", with("layers: [flatten, {linear: 3000000000}]"), 5, {"layers.1", "<= 2147483647"}},
    {"EmbeddingOfFloats",
     with("layers: [{embedding: {count: 5, dim: 4}}, flatten, {linear: 10}]", "houses: {train: houses.h5}"),
     5,
     {"embedding", "float32"}},
    {"BatchNormOfOneRow",
     with("layers: [flatten, {linear: 8}, batch_norm1d, {linear: 10}]\n    batch: 4\n    grains: 4"),
     7,
     {"batch norm", "at least 2 rows per grain", "4 rows in 4 grains"}},
    {"BatchNormOfAShortBatch",
     with("layers: [flatten, {linear: 8}, batch_norm1d, {linear: 10}]\n    batch: 8999"),
     6,
     {"batch norm", "last batch of 1"}},
    {"DropLastOfEverything", with("batch: 20000\n    drop_last: true"), 8, {"batch", "9000 training rows"}},
    {"StoppingWithoutEvaluation",
     with("early_stopping: {}", "digits: {train: digits.h5}"),
     8,
     {"early_stopping", "`validation`, `held_out` or `test`"}},
    {"StoppingOnAnUnmeasuredMetric",
     with("early_stopping: {metric: accuracy}"),
     8,
     {"does not measure `accuracy`", "`metrics`"}},
    {"RuleForNoParameter", with("parameters: [{match: head.*, frozen: true}]"), 8, {"parameters", "head.*"}},
    {"RuleWithoutPattern", with("parameters: [{frozen: true}]"), 8, {"parameters.0", "missing key `match`"}},
    {"MissingInitFile", with("init: weights.safetensors"), 8, {"init", "expected a safetensors file"}},
    {"TwoModelsOfOneName",
     with("batch: 1") + "  - {name: m, loss: cross_entropy, optimizer: sgd, layers: [flatten, {linear: 10}]}\n",
     9,
     {"models.1.name", "`m`", "a name of models.0", "job.yaml:4"}},
    {"VariantsOfOneName", kTwoModels, 4, {"models.0.name", "`m`", "add ${seed} to the name"}},
    {"NameWithASlash", with("name: a/b"), 4, {"name", "A-Z a-z 0-9 . _ -", "\"a/b\""}},
    {"NameWithADotFirst", with("name: .m"), 4, {"name", "no dot first"}},
    {"NameTooLong", with("name: " + std::string(129, 'a')), 4, {"name", "1 to 128"}},
    {"UnknownVariable", with("name: m-${sed}\n    sweep: {seed: [1, 2]}"), 4, {"unknown variable `${sed}`", "`seed`"}},
    {"VariableWithoutSweep", with("batch: ${size}"), 8, {"unknown variable `${size}`"}},
    {"UnclosedVariable", with("name: 'm-${seed'\n    sweep: {seed: [1, 2]}"), 4, {"expected `}` after `${`"}},
    {"UnsetEnvironment",
     with("batch: '${env:TUTTI_NO_SUCH_VARIABLE}'"),
     8,
     {"environment variable TUTTI_NO_SUCH_VARIABLE"}},
    {"WrongTypeFromASweep",
     with("optimizer: {sgd: {lr: '${lr}'}}\n    sweep:\n      lr:\n        - fast"),
     10,
     {"optimizer.sgd.lr", "expected number", "found `fast`"}},
    {"SweepOfNothing", with("sweep: {seed: []}"), 8, {"sweep.seed", "an empty list"}},
    {"SweepOfAScalar", with("sweep: {seed: 5}"), 8, {"sweep.seed", "expected a list", "found `5`"}},
    {"SweepAsList", with("sweep: [seed]"), 8, {"sweep", "expected a mapping", "a list"}},
    {"DistributionWithoutSample", with("sweep: {seed: {int: [1, 9]}}"), 8, {"sweep.seed", "`sample: N`"}},
    {"UnknownDistribution",
     with("sweep: {seed: {normal: [1, 9]}}\n    sample: 2"),
     8,
     {"unknown distribution `normal`", "uniform"}},
    {"RangeUpsideDown", with("sweep: {seed: {int: [9, 1]}}\n    sample: 2"), 8, {"low <= high", "[9,1]"}},
    {"LogarithmOfZero", with("sweep: {seed: {log_uniform: [0, 1]}}\n    sample: 2"), 8, {"numbers above 0"}},
    {"SampleOfNothing", with("sample: 3"), 8, {"sample", "expected `sweep`"}},
    {"SampleTooLarge", with("sweep: {seed: {int: [1, 9]}}\n    sample: 10001"), 9, {"at most 10000 models", "10001"}},
    {"GridTooLarge",
     with("name: m${index}\n    sweep: {a: &l [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], b: *l, c: *l, d: *l, e: *l}"),
     5,
     {"at most 10000 models"}},
    {"NameInDefaults", "defaults: {name: m}\n" + with("batch: 1"), 1, {"defaults: unknown key `name`"}},
    {"UnknownKeyInDefaults",
     "defaults: {bach: 1}\n" + with("batch: 1"),
     1,
     {"defaults: unknown key `bach`", "`batch`"}},
    {"DuplicateKey", with("batch: 1\n    batch: 2"), 9, {"duplicate key `batch`", "job.yaml:8"}},
    {"SyntaxError", with("batch: ["), 9, {"not YAML"}},
    {"VariableWithoutQuotes",
     "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n  - {name: r8-${seed}, sweep: {seed: [1, 2]}}\n",
     4,
     {"not YAML", "in quotes"}},
};

void PrintTo(const BadInput& input, std::ostream* stream) { *stream << input.what; }

class BadInputTest : public JobTest, public ::testing::WithParamInterface<BadInput> {};

TEST_P(BadInputTest, IsOneFaultThatNamesLineAndCause) {
  const BadInput& input = GetParam();
  const std::vector<std::string> faults = faults_of(input.text);
  ASSERT_EQ(faults.size(), 1u) << ::testing::PrintToString(faults) << "\n" << input.text;
  EXPECT_THAT(faults.front(), HasSubstr("job.yaml:" + std::to_string(input.line) + ": ")) << input.text;
  for (const std::string& word : input.words) EXPECT_THAT(faults.front(), HasSubstr(word));
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, ::testing::ValuesIn(kBadInputs),
                         [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace tutti::launch
