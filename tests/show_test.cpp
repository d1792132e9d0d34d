// tutti show: results of finished and running jobs, ranked, grouped, and printed in three forms.
#include "launch/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "launch/command.h"
#include "launch/results.h"
#include "launch/version.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// An output folder that is removed at the end.
class ShowTest : public ::testing::Test {
 protected:
  ShowTest() : out_(fs::temp_directory_path() / ("tutti_show_test_" + std::to_string(std::random_device()()))) {
    fs::create_directories(out_);
  }
  ~ShowTest() override { fs::remove_all(out_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((out_ / file).parent_path());
    std::ofstream(out_ / file) << text;
  }

  void write_summary() {
    write("summary.json", R"({"models": [
      {"name": "a1", "state": "finished", "labels": {"width": 16, "lr": 0.01, "seed": 1}, "epoch": 2, "step": 20,
       "train_loss": 0.5, "validation": {"loss": 0.6, "accuracy": 0.80}, "test": {"loss": 0.7, "accuracy": 0.70}},
      {"name": "a2", "state": "finished", "labels": {"width": 16, "lr": 0.01, "seed": 2}, "epoch": 2, "step": 20,
       "train_loss": 0.4, "validation": {"loss": 0.5, "accuracy": 0.84}, "test": {"loss": 0.6, "accuracy": 0.72}},
      {"name": "b1", "state": "finished", "labels": {"width": 32, "lr": 0.01, "seed": 1}, "epoch": 2, "step": 20,
       "train_loss": 0.3, "validation": {"loss": 0.4, "accuracy": 0.90}, "test": {"loss": 0.9, "accuracy": 0.60}},
      {"name": "c", "state": "failed", "labels": {}, "epoch": 0, "step": 7, "train_loss": null,
       "reason": "non-finite loss at step 7, \"batch\" 3"}]})");
  }

  std::vector<std::string> names(const std::vector<ModelResult>& results) {
    std::vector<std::string> all;
    all.reserve(results.size());
    for (const ModelResult& result : results) all.push_back(result.name);
    return all;
  }

  std::string output_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), out_.string());
    ::testing::internal::CaptureStdout();
    const int code = show_command(arguments);
    std::fflush(stdout);
    std::string text = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, kDone);
    return text;
  }

  fs::path out_;
};

TEST_F(ShowTest, SummaryIsReadInItsOrder) {
  write_summary();
  const auto results = read_results(out_);
  EXPECT_THAT(names(results), ElementsAre("a1", "a2", "b1", "c"));
  EXPECT_EQ(results[1].metric("test.accuracy"), 0.72);
  EXPECT_EQ(results[1].metric("train.loss"), 0.4);
  EXPECT_EQ(results[3].metric("train.loss"), std::nullopt);
  EXPECT_EQ(results[3].step, 7);
}

TEST_F(ShowTest, RunningJobIsReadFromItsMetrics) {
  write_summary();  // of an earlier run: a lock says that it is out of date
  write("lock", "{}");
  write("models/m1/model.yaml", "labels: {width: 16, optimizer: adam}\n");
  write("models/m1/metrics.jsonl",
        "{\"event\":\"epoch\",\"epoch\":1,\"step\":10,\"train_loss\":0.9,\"lr\":0.1,\"test\":{\"accuracy\":0.5}}\n"
        "{\"event\":\"step\",\"epoch\":1,\"step\":13,\"loss\":0.7,\"lr\":0.1,\"gradient_norm\":1.0}\n"
        "{\"event\":\"step\",\"epo");
  write("models/m2/metrics.jsonl", "{\"event\":\"failed\",\"step\":3,\"reason\":\"label out of range\"}\n");
  write("models/m3/final/weights.safetensors", "");
  const auto results = read_results(out_);
  ASSERT_THAT(names(results), ElementsAre("m1", "m2", "m3"));
  EXPECT_EQ(results[0].state, "running");
  EXPECT_EQ(results[0].step, 13);
  EXPECT_EQ(results[0].metric("train.loss"), 0.7);
  EXPECT_EQ(results[0].metric("test.accuracy"), 0.5);
  EXPECT_EQ(results[0].labels, (nlohmann::json{{"width", 16}, {"optimizer", "adam"}}));
  EXPECT_EQ(results[1].state, "failed");
  EXPECT_EQ(results[1].reason, "label out of range");
  EXPECT_EQ(results[2].state, "finished");
}

TEST_F(ShowTest, ModelOfAKilledJobIsStopped) {
  write("models/m1/metrics.jsonl", "{\"event\":\"epoch\",\"epoch\":1,\"step\":10,\"train_loss\":0.9}\n");
  EXPECT_EQ(read_results(out_).at(0).state, "stopped");
}

TEST_F(ShowTest, OtherFolderIsRefused) {
  try {
    read_results(out_ / "nowhere");
    FAIL() << "no UsageError";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere: expected the output folder of a job"));
  }
}

TEST_F(ShowTest, DamagedFileIsNamedInPlainWords) {
  const auto refusal = [this] {
    try {
      read_results(out_);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no UsageError");
  };
  for (const char* text : {"", "{\"models\": [{\"na", R"({"models": [7]})", R"({"models": [{"name": 7}]})"}) {
    write("summary.json", text);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("summary.json: expected a summary"), HasSubstr("remove it"),
                                 Not(HasSubstr("json.exception"))))
        << text;
  }
  fs::remove(out_ / "summary.json");
  write("models/m/model.yaml", "labels: {width: [1, 2]}\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.yaml: expected the description"), HasSubstr("remove it")));
  write("models/m/model.yaml", "labels: {");
  EXPECT_THAT(refusal(), HasSubstr("model.yaml: expected the description"));
  fs::remove(out_ / "models/m/model.yaml");
  write("models/m/metrics.jsonl", "{\"event\": \"epoch\", \"epoch\": 1}\n{\"event\": \"epoch\", \"epoch\": \"two\"}\n");
  EXPECT_THAT(refusal(), HasSubstr("metrics.jsonl:2: expected a line that training wrote"));
}

TEST_F(ShowTest, ValidationAccuracyDecidesUnlessAsked) {
  write_summary();
  auto results = read_results(out_);
  EXPECT_EQ(deciding_metric(results, ""), "accuracy");
  EXPECT_EQ(results[0].metric("accuracy"), 0.80);
  EXPECT_EQ(deciding_metric(results, "loss"), "loss");
  EXPECT_EQ(deciding_metric(results, "test.loss"), "test.loss");
  EXPECT_THROW(deciding_metric(results, "top5"), UsageError);
}

TEST_F(ShowTest, ModelsAreRankedByValidationElseTestAndThenByWhatTheyHave) {
  write("summary.json", R"({"models": [
    {"name": "failed", "state": "failed"},
    {"name": "train-only", "state": "finished", "train_loss": 0.1},
    {"name": "regression-b", "state": "finished", "test": {"loss": 0.2, "mae": 0.4}},
    {"name": "loss-only", "state": "finished", "validation": {"loss": 0.1}},
    {"name": "tested", "state": "finished", "test": {"loss": 0.5, "accuracy": 0.85}},
    {"name": "regression-a", "state": "finished", "test": {"loss": 0.3, "mae": 0.3}},
    {"name": "validated", "state": "finished", "validation": {"accuracy": 0.9}, "test": {"accuracy": 0.1}},
    {"name": "worse", "state": "finished", "validation": {"accuracy": 0.8}, "test": {"accuracy": 0.99}}]})");
  auto results = read_results(out_);
  sort_best_first(results, deciding_metric(results, ""));
  EXPECT_THAT(names(results), ElementsAre("validated", "tested", "worse", "regression-a", "regression-b", "loss-only",
                                          "train-only", "failed"));
}

TEST_F(ShowTest, GroupsGoByAMetricOfTheModelsThatHaveTheVariables) {
  write("summary.json", R"({"models": [
    {"name": "plain", "state": "finished", "validation": {"accuracy": 0.9}},
    {"name": "swept", "state": "finished", "labels": {"lr": 0.1}, "test": {"mae": 0.25}}]})");
  const std::string text = output_of({"--by", "lr"});
  EXPECT_THAT(text, HasSubstr("mae"));
  EXPECT_THAT(text, HasSubstr("0.25"));
  EXPECT_THROW(show_command({out_.string(), "--by", "lr", "--metric", "accuracy"}), UsageError);
}

TEST_F(ShowTest, BestIsGreatestAccuracyAndLeastLoss) {
  write_summary();
  auto results = read_results(out_);
  sort_best_first(results, "test.accuracy");
  EXPECT_THAT(names(results), ElementsAre("a2", "a1", "b1", "c"));
  sort_best_first(results, "train.loss");
  EXPECT_THAT(names(results), ElementsAre("b1", "a2", "a1", "c"));
}

TEST_F(ShowTest, GroupsHaveMeanAndSampleDeviation) {
  write_summary();
  const auto groups = group_by(read_results(out_), {"width", "lr"}, "test.accuracy");
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].values, ElementsAre("16", "0.01"));
  EXPECT_EQ(groups[0].model_count, 2);
  EXPECT_NEAR(groups[0].mean, 0.71, 1e-12);
  EXPECT_NEAR(groups[0].deviation, std::sqrt(0.0002), 1e-12);  // two values, each 0.01 from the mean
  EXPECT_EQ(groups[1].model_count, 1);
  EXPECT_EQ(groups[1].deviation, 0);
  EXPECT_THROW(group_by(read_results(out_), {"depth"}, "test.accuracy"), UsageError);
}

TEST_F(ShowTest, TableHoldsTheBestAndAllCounts) {
  write_summary();
  const std::string text = output_of({"--best", "1"});
  EXPECT_THAT(text, HasSubstr("4 models: 1 failed, 3 finished\n"));
  EXPECT_THAT(text, HasSubstr("b1"));
  EXPECT_THAT(text, Not(HasSubstr("a1")));
}

TEST_F(ShowTest, OneModelIsNotCalledModels) {
  write("summary.json", R"({"models": [{"name": "a", "state": "finished"}]})");
  EXPECT_THAT(output_of({}), HasSubstr("1 model: 1 finished\n"));
}

TEST_F(ShowTest, TableShowsTheReasonOfAFailure) {
  write_summary();
  EXPECT_THAT(output_of({}), HasSubstr("non-finite loss at step 7"));
}

TEST_F(ShowTest, CsvQuotesWhatItMust) {
  write_summary();
  const std::string text = output_of({"--csv", "--metric", "test.accuracy"});
  EXPECT_THAT(text, HasSubstr("model,state,epoch,step,lr,seed,width,train.loss,validation.accuracy,validation.loss,"
                              "test.accuracy,test.loss,reason\r\n"
                              "a2,finished,2,20,0.01,2,16,0.4,0.84,0.5,0.72,0.6,\r\n"));
  EXPECT_THAT(text, HasSubstr(",\"non-finite loss at step 7, \"\"batch\"\" 3\"\r\n"));
}

TEST_F(ShowTest, JsonHoldsModelsOrGroups) {
  write_summary();
  const auto models = nlohmann::json::parse(output_of({"--json"}));
  EXPECT_EQ(models.at(0).at("name"), "b1");
  const auto groups = nlohmann::json::parse(output_of({"--json", "--by", "width", "--metric", "test.accuracy"}));
  EXPECT_EQ(groups.at(0).at("values"), (nlohmann::json{{"width", "16"}}));
  EXPECT_EQ(groups.at(0).at("models"), 2);
}

TEST_F(ShowTest, GroupTableJoinsMeanAndDeviation) {
  write_summary();
  EXPECT_THAT(output_of({"--by", "width", "--metric", "test.accuracy"}), HasSubstr("0.71 ± 0.01414"));
}

TEST_F(ShowTest, WrongArgumentsAreRefused) {
  write_summary();
  EXPECT_THROW(show_command({}), UsageError);
  EXPECT_THROW(show_command({out_.string(), "--best", "0"}), UsageError);
  EXPECT_THROW(show_command({out_.string(), "--csv", "--json"}), UsageError);
  EXPECT_THROW(show_command({out_.string(), "--unknown"}), UsageError);
}

TEST(VersionTest, NamesEverythingTheProgramIsBuiltOn) {
  const nlohmann::json info = version_info();
  EXPECT_THAT(info.at("libtorch").get<std::string>(), HasSubstr("2."));
  EXPECT_THAT(info.at("mpi").get<std::string>(), HasSubstr("MPI"));
  for (const char* key : {"tutti", "hdf5", "build", "cpu_level"}) EXPECT_NE(info.at(key), "") << key;
}

}  // namespace
}  // namespace tutti::launch
