#include "src/train/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

class MetricsLogTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove(file_); }
  fs::path file_ = testing::TempDir() + "metrics_log_test.jsonl";
};

TEST_F(MetricsLogTest, CutsBackToTheGivenLength) {
  int64_t kept = 0;
  {
    MetricsLog log(file_, 0);
    log.write({{"step", 1}});
    kept = log.size_bytes();
    log.write({{"step", 2}});
  }
  {
    MetricsLog log(file_, kept);
    log.write({{"step", 3}});
  }
  EXPECT_EQ(content(file_), "{\"step\":1}\n{\"step\":3}\n");
}

TEST_F(MetricsLogTest, SaysWhenLinesAreLost) {
  { MetricsLog(file_, 0).write({{"step", 1}}); }
  testing::internal::CaptureStdout();
  MetricsLog log(file_, 100);
  fflush(stdout);
  const std::string warning = testing::internal::GetCapturedStdout();
  EXPECT_NE(warning.find(file_.string()), std::string::npos) << warning;
  EXPECT_NE(warning.find("100 bytes"), std::string::npos) << warning;
  EXPECT_NE(warning.find("found 11"), std::string::npos) << warning;
  log.write({{"step", 2}});
  EXPECT_EQ(content(file_), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsLogTest, WritesLaterWhatAFullDiskRefused) {
  MetricsLog log(file_, 0);
  log.write({{"step", 1}});
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = 14;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  log.write({{"step", 2}});
  EXPECT_ANY_THROW(log.sync());
  setrlimit(RLIMIT_FSIZE, &limit);
  log.write({{"step", 3}});
  log.sync();
  EXPECT_EQ(content(file_), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST_F(MetricsLogTest, PutsBackWhatWasRemovedOrReplaced) {
  const fs::path folder = testing::TempDir() + "metrics_log_test";
  MetricsLog log((fs::create_directories(folder), folder / "metrics.jsonl"), 0);
  log.write({{"step", 1}});
  fs::remove_all(folder);
  log.write({{"step", 2}});
  log.sync();
  EXPECT_EQ(content(folder / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  fs::remove(folder / "metrics.jsonl");
  std::ofstream(folder / "metrics.jsonl") << "the file of another program, which is longer than the log";
  log.write({{"step", 3}});
  log.sync();
  EXPECT_EQ(content(folder / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tutti::train
