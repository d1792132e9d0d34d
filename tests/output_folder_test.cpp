// The output folder: its lock against other runs, and what it accepts and refuses.
#include "launch/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/command.h"
#include "launch/folder_lock.h"
#include "launch/text_file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "output-folder-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    write("job.yaml", "run: {}\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }

  Job job() const {
    Job job;
    job.file = folder_ / "job.yaml";
    job.run.out = folder_ / "out";
    return job;
  }

  /// The lock of a run on another host, last touched so long ago.
  void write_foreign_lock(std::chrono::seconds age) const {
    write("out/lock", R"({"host": "elsewhere", "process": 1, "start_ticks": 1, "token": "a"})");
    fs::last_write_time(folder_ / "out/lock", fs::file_time_type::clock::now() - age);
  }

  std::string refusal(const Job& job) const {
    try {
      OutputFolder folder(job);
      return "no UsageError";
    } catch (const UsageError& error) {
      return error.what();
    }
  }

  fs::path folder_;
};

TEST_F(OutputFolderTest, LockGoesWithItsRun) {
  {
    OutputFolder folder(job());
    EXPECT_TRUE(fs::exists(folder_ / "out/lock"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "out/lock"));
  EXPECT_TRUE(fs::exists(folder_ / "out/job.json"));
}

TEST_F(OutputFolderTest, LostLockIsNoticed) {
  FolderLock lock(folder_);
  EXPECT_NO_THROW(lock.touch());
  fs::remove(folder_ / "lock");
  EXPECT_THROW(lock.touch(), std::runtime_error);
}

TEST_F(OutputFolderTest, LockOfAnotherIsNoticedAndLeft) {
  const std::string other = R"({"host": "elsewhere", "process": 7, "start_ticks": 1, "token": "b"})";
  {
    FolderLock lock(folder_);
    write("lock", other);
    try {
      lock.touch();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("process 7 on host elsewhere"));
    }
  }
  EXPECT_EQ(read_text(folder_ / "lock"), other);
}

TEST_F(OutputFolderTest, LockOfALivingRunIsRespected) {
  FolderLock lock(folder_);
  EXPECT_THROW(FolderLock second(folder_), UsageError);
  EXPECT_NO_THROW(lock.touch());
}

TEST_F(OutputFolderTest, LockOfAGoneProcessIsTakenOver) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  // This process, but begun at another time: an id that was used again.
  write("lock", nlohmann::json{{"host", host}, {"process", getpid()}, {"start_ticks", 1}, {"token", "c"}}.dump());
  FolderLock lock(folder_);
  EXPECT_NO_THROW(lock.touch());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "job.yaml and lock";
}

TEST_F(OutputFolderTest, LockOfAnotherHostIsTakenOverOnceItIsNotTouched) {
  write_foreign_lock(FolderLock::kStaleAfter / 2);
  EXPECT_THAT(refusal(job()), HasSubstr("in use by process 1 on host elsewhere"));
  write_foreign_lock(FolderLock::kStaleAfter * 2);
  EXPECT_NO_THROW(OutputFolder folder(job()));
}

TEST_F(OutputFolderTest, FolderOfSomethingElseIsRefused) {
  write("out/thesis.tex", "");
  EXPECT_THAT(refusal(job()), HasSubstr("with thesis.tex"));
  EXPECT_FALSE(fs::exists(folder_ / "out/lock"));
}

TEST_F(OutputFolderTest, EarlierOutputNeedsResume) {
  { OutputFolder folder(job()); }
  EXPECT_THAT(refusal(job()), HasSubstr("--resume"));
  Job resumed = job();
  resumed.run.resume = true;
  EXPECT_NO_THROW(OutputFolder folder(resumed));
}

TEST_F(OutputFolderTest, ModelThatLeftTheJobFileIsNamed) {
  write("out/job.json", R"({"format": 1, "models": {"removed-one": {}}})");
  Job resumed = job();
  resumed.run.resume = true;
  ::testing::internal::CaptureStdout();
  { OutputFolder folder(resumed); }
  std::fflush(stdout);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("removed-one"));
}

}  // namespace
}  // namespace tutti::launch
