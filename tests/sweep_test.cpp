// Sweeps, random draws and substitution.
#include "launch/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "launch/job_document.h"
#include "launch/substitution.h"
#include "tests/job_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Node parse(const std::string& yaml) {
  Faults faults("text", {});
  Node node = parse_document(yaml, faults);
  faults.throw_if_any();
  return node;
}

Sweep sweep_of(const std::string& sweep, const std::string& sample = "") {
  Faults faults("text", {});
  const Node variables = parse(sweep);
  const Node count = parse(sample);
  Sweep result(&variables, sample.empty() ? nullptr : &count, "models.0", faults);
  faults.throw_if_any();
  return result;
}

std::vector<std::string> draws_of(const std::string& sweep, const std::string& variable,
                                  const std::string& sample = "200") {
  const Sweep draws = sweep_of(sweep, sample);
  std::vector<std::string> values;
  for (int64_t i = 0; i < draws.size(); ++i) values.push_back(draws.variant(i).at(variable).text);
  return values;
}

TEST(SweepTest, GridGoesThroughAllCombinationsLastFastest) {
  const Sweep sweep = sweep_of("{z: [1, 2], a: [x, y, w]}");
  std::vector<std::string> seen;
  for (int64_t i = 0; i < sweep.size(); ++i) {
    const Variables values = sweep.variant(i);
    seen.push_back(values.at("z").text + values.at("a").text + values.at("index").text);
  }
  EXPECT_THAT(seen, ElementsAre("1x0", "1y1", "1w2", "2x3", "2y4", "2w5"));
}

TEST(SweepTest, NoSweepIsOneVariant) {
  Faults faults("text", {});
  EXPECT_EQ(Sweep(nullptr, nullptr, "models.0", faults).size(), 1);
}

TEST(SampleTest, DrawsLieInTheirRanges) {
  const std::string sweep =
      "{u: {uniform: [-1, 3]}, l: {log_uniform: [1e-4, 1e-1]}, i: {int: [2, 4]}, c: {choice: [a, b]}}";
  double below_middle = 0;
  for (const std::string& text : draws_of(sweep, "u")) {
    const double value = std::stod(text);
    EXPECT_TRUE(value >= -1 && value <= 3) << text;
  }
  for (const std::string& text : draws_of(sweep, "l", "2000")) {
    const double value = std::stod(text);
    EXPECT_TRUE(value >= 1e-4 && value <= 1e-1) << text;
    below_middle += value < std::sqrt(1e-4 * 1e-1);
  }
  // Half of the draws lie below the geometric mean; 2,000 of them within five standard deviations.
  EXPECT_NEAR(below_middle, 1000, 112);
  const auto whole = draws_of(sweep, "i");
  EXPECT_EQ(std::set<std::string>(whole.begin(), whole.end()), (std::set<std::string>{"2", "3", "4"}));
  const auto choices = draws_of(sweep, "c");
  EXPECT_EQ(std::set<std::string>(choices.begin(), choices.end()), (std::set<std::string>{"a", "b"}));
}

TEST(SampleTest, DrawsDoNotDependOnOtherVariables) {
  const auto alone = draws_of("{lr: {uniform: [0, 1]}}", "lr");
  EXPECT_EQ(draws_of("{a: [1, 2], lr: {uniform: [0, 1]}, z: {int: [0, 9]}}", "lr"), alone);
  EXPECT_NE(draws_of("{rate: {uniform: [0, 1]}}", "rate"), alone);
}

TEST(SampleTest, DrawsDependOnTheSeedAndNotOnTheCount) {
  const auto first = draws_of("{lr: {uniform: [0, 1]}}", "lr", "{count: 5}");
  auto longer = draws_of("{lr: {uniform: [0, 1]}}", "lr", "{count: 9, seed: 0}");
  longer.resize(5);
  EXPECT_EQ(longer, first);
  EXPECT_NE(draws_of("{lr: {uniform: [0, 1]}}", "lr", "{count: 5, seed: 1}"), first);
}

TEST(SampleTest, DrawnNumberIsWhatItsTextSays) {
  for (const std::string& text : draws_of("{lr: {log_uniform: [1e-9, 1e9]}}", "lr")) {
    EXPECT_LE(text.size(), std::string("1.23456e-09").size()) << text;
    EXPECT_TRUE(number_of(Node::scalar(text, {}))) << text;
  }
}

nlohmann::json substituted(const std::string& text, const std::string& variables) {
  Faults faults("text", {});
  Variables values;
  const Node map = parse(variables);
  for (const Node& child : map.children) values[child.key] = child;
  const Node result = substitute(parse(text), values, "", faults);
  faults.throw_if_any();
  return json_of(result);
}

TEST(SubstitutionTest, WholeScalarTakesTheType) {
  EXPECT_EQ(substituted("[\"${a}\", \"${b}\", \"${c}\", \"${d}\", \"${e}\"]",
                        "{a: 1, b: 1e-3, c: true, d: x, e: [1, {f: 2}]}"),
            nlohmann::json::parse(R"([1, 0.001, true, "x", [1, {"f": 2}]])"));
}

TEST(SubstitutionTest, QuotedValueStaysText) { EXPECT_EQ(substituted("[\"${a}\"]", "{a: '1'}"), nlohmann::json{"1"}); }

TEST(SubstitutionTest, InsideTextTheSourceTextIsPutIn) {
  EXPECT_EQ(substituted("[\"w${a}-${b}\", \"${a}0\"]", "{a: 0.010, b: [16, 32]}"),
            (nlohmann::json{"w0.010-16-32", "0.0100"}));
}

TEST(SubstitutionTest, KeysAreReplaced) {
  EXPECT_EQ(substituted("{\"${o}\": {lr: \"${lr}\"}}", "{o: adam, lr: 0.5}"),
            nlohmann::json::parse(R"({"adam": {"lr": 0.5}})"));
}

TEST(SubstitutionTest, DollarEscapesABrace) {
  EXPECT_EQ(substituted("[\"$${a}\", \"$x\"]", "{a: 1}"), (nlohmann::json{"${a}", "$x"}));
}

TEST(SubstitutionTest, EnvironmentVariablesAreTyped) {
  ASSERT_EQ(::setenv("TUTTI_TEST_BATCH", "48", 1), 0);
  EXPECT_EQ(substituted("[\"${env:TUTTI_TEST_BATCH}\", \"b${env:TUTTI_TEST_BATCH}\"]", "{}"),
            (nlohmann::json{48, "b48"}));
}

TEST(SubstitutionTest, MappingInsideTextIsAFault) {
  EXPECT_THAT(data::message_of<JobError>([] { substituted("[\"a${m}\"]", "{m: {x: 1}}"); }),
              HasSubstr("found a mapping"));
}

class SweptJobTest : public JobTest {};

TEST_F(SweptJobTest, VariableNamedLikeAKeySetsIt) {
  const Job job = load(with("name: m-${batch}-${seed}\n    sweep: {batch: [16, 32], seed: [3, 4]}"));
  ASSERT_EQ(job.models.size(), 4u);
  EXPECT_EQ(job.models[1].name, "m-16-4");
  EXPECT_EQ(job.models[1].batch, 16);
  EXPECT_EQ(job.models[1].seed, 4u);
}

TEST_F(SweptJobTest, KeyOfTheBlockGoesBeforeTheVariable) {
  const Job job = load(with("name: m-${seed}\n    seed: 9\n    sweep: {seed: [3, 4]}"));
  EXPECT_EQ(job.models[0].seed, 9u);
}

TEST_F(SweptJobTest, VariableGoesBeforeADefaultThatDoesNotUseIt) {
  EXPECT_EQ(load("defaults: {seed: 9}\n" + with("name: m-${seed}\n    sweep: {seed: [3, 4]}")).models[1].seed, 4u);
  const std::string models =
      "models: [{name: 'm-${optimizer}', layers: [flatten, {linear: 10}], sweep: {optimizer: [adam, sgd]}}]\n";
  const Job job = load(
      "run: {out: o}\ndata: {d: {train: digits.h5}}\n"
      "defaults: {loss: cross_entropy, optimizer: {'${optimizer}': {lr: 0.5}}}\n" +
      models);
  EXPECT_EQ(job.models[0].optimizer.kind, train::OptimizerSpec::Kind::kAdam);
  EXPECT_EQ(job.models[0].optimizer.lr, 0.5);
}

TEST_F(SweptJobTest, SweptValuesMayBeMappingsAndLists) {
  const Job job = load(
      "run: {out: o}\ndata: {d: {train: digits.h5}}\nmodels:\n"
      "  - name: m-${index}\n    loss: cross_entropy\n    optimizer: \"${how}\"\n    layers: \"${net}\"\n"
      "    sweep:\n      how: [sgd, {adam: {lr: 0.25}}]\n"
      "      net: [[flatten, {linear: 10}], [flatten, {linear: 5}, relu, {linear: 10}]]\n");
  ASSERT_EQ(job.models.size(), 4u);
  EXPECT_EQ(job.models[2].optimizer.lr, 0.25);
  EXPECT_EQ(job.models[3].graph->parameters.size(), 4u);
}

TEST_F(SweptJobTest, SampledVariantsAreLabelled) {
  const Job job = load(with("name: m-${index}\n    sweep: {seed: {int: [1, 1000]}}\n    sample: {count: 3, seed: 7}"));
  ASSERT_EQ(job.models.size(), 3u);
  for (const train::ModelSpec& model : job.models) {
    EXPECT_EQ(model.labels, (nlohmann::json{{"seed", model.seed}}));
    EXPECT_TRUE(model.seed >= 1 && model.seed <= 1000) << model.seed;
  }
}

}  // namespace
}  // namespace tutti::launch
