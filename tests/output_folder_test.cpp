// The output folder: its lock against other runs, and what it accepts and refuses.
#include "launch/output_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "launch/command.h"
#include "launch/folder_lock.h"
#include "launch/lock_keeper.h"
#include "launch/results.h"
#include "launch/saved_job.h"
#include "launch/text_file.h"
#include "launch/trace_file.h"
#include "src/train/trace.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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

  /// What `action` throws as UsageError.
  template <class Action>
  static std::string refusal_of(const Action& action) {
    try {
      action();
      return "no UsageError";
    } catch (const UsageError& error) {
      return error.what();
    }
  }
  static std::string refusal(const Job& job) {
    return refusal_of([&job] { OutputFolder folder(job); });
  }
  std::string refusal_of_trace(const fs::path& trace) const {
    Job traced = job();
    traced.run.trace = trace;
    return refusal_of([&traced] { check_trace_file(traced); });
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

/// Whether `keeper` says within ten seconds that its lock is lost.
bool says_that_it_is_lost(const LockKeeper& keeper) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    try {
      keeper.check();
    } catch (const std::runtime_error&) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST_F(OutputFolderTest, KeeperTouchesItsLockAndSaysWhenItIsLost) {
  const LockKeeper keeper(folder_, std::chrono::milliseconds(5));
  const fs::file_time_type long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder_ / "lock", long_ago);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (fs::last_write_time(folder_ / "lock") == long_ago && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_GT(fs::last_write_time(folder_ / "lock"), long_ago);
  EXPECT_NO_THROW(keeper.check());
  fs::remove(folder_ / "lock");
  EXPECT_TRUE(says_that_it_is_lost(keeper));
}

TEST_F(OutputFolderTest, FileSystemThatHangsHoldsUpNobodyButTheKeeper) {
  const LockKeeper keeper(folder_, std::chrono::milliseconds(1));
  // To open a file hangs while another descriptor has a lease on it and is asked to give it up.
  signal(SIGIO, SIG_IGN);
  const int holder = open((folder_ / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(holder, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (fcntl(holder, F_SETLEASE, F_WRLCK) != 0) {
    const bool keeper_has_it_open = errno == EAGAIN && std::chrono::steady_clock::now() < end;
    if (!keeper_has_it_open) GTEST_SKIP() << "no lease on this file system: " << std::strerror(errno);
  }
  auto longest = std::chrono::steady_clock::duration::zero();
  const auto check = [&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NO_THROW(keeper.check());
    longest = std::max(longest, std::chrono::steady_clock::now() - begin);
  };
  while (fcntl(holder, F_GETLEASE) == F_WRLCK && std::chrono::steady_clock::now() < end) check();
  ASSERT_NE(fcntl(holder, F_GETLEASE), F_WRLCK) << "the keeper has not tried to open its lock";
  for (int i = 0; i < 100; ++i) check();
  // The system takes the lease away, and so ends the keeper's wait, after 45 s by default.
  EXPECT_LT(std::chrono::duration<double>(longest).count(), 5);
  fs::remove(folder_ / "lock");
  close(holder);
  EXPECT_TRUE(says_that_it_is_lost(keeper));
}

TEST_F(OutputFolderTest, LockThatCannotBeReadIsNamedWithTheReason) {
  fs::create_directories(folder_ / "out");
  fs::create_symlink("lock", folder_ / "out/lock");  // to itself
  EXPECT_THAT(refusal(job()), AllOf(HasSubstr("out/lock: Too many levels of symbolic links"), HasSubstr("--out")));
  fs::remove(folder_ / "out/lock");
  fs::create_symlink("absent/file", folder_ / "out/lock");
  EXPECT_THAT(refusal(job()), HasSubstr("out/lock: No such file or directory"));
  fs::remove(folder_ / "out/lock");
  ASSERT_EQ(mkfifo((folder_ / "out/lock").c_str(), 0600), 0);
  EXPECT_THAT(refusal(job()), HasSubstr("out/lock: it is a pipe, no regular file"));
}

/// What `action` gives without the rights of root, whom no permissions hold back.
template <class Action>
std::string as_nobody(const Action& action) {
  constexpr uid_t kNobody = 65534;
  const uid_t own = geteuid();
  if (own == 0 && seteuid(kNobody) != 0) return "cannot give up the rights of root";
  std::string result = action();
  if (seteuid(own) != 0) return "cannot take back the rights of root";
  return result;
}

TEST_F(OutputFolderTest, LockWithoutPermissionIsNamed) {
  write("out/lock", "{}");
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(folder_ / "out", fs::perms::all);
  fs::permissions(folder_ / "out/lock", fs::perms::none);
  const std::string found = as_nobody([this] { return refusal(job()); });
  EXPECT_THAT(found, AllOf(HasSubstr("out/lock: Permission denied"), HasSubstr("remove that file")));
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

TEST_F(OutputFolderTest, DamagedRecordIsNamedAndLeft) {
  for (const char* text : {"", "{\"models\": ", "[]", "{}", R"({"models": []})"}) {
    write("out/job.json", text);
    Job resumed = job();
    resumed.run.resume = true;
    EXPECT_THAT(refusal(resumed), AllOf(HasSubstr("out/job.json: expected the record of a job"), HasSubstr("restore")))
        << text;
    EXPECT_EQ(read_text(folder_ / "out/job.json"), text);
  }
}

/// As a run writes it.
std::string trace_of_one_event() {
  train::Trace trace(0, true);
  trace.record("steps", "model", 0, {}, {}, 1, 2);
  return "[\n" + trace.events() + ",\n" + trace.events() + "\n]\n";
}

TEST_F(OutputFolderTest, TraceReplacesNothingButATrace) {
  EXPECT_THAT(refusal_of_trace(folder_ / "../" / folder_.filename() / "job.yaml"), HasSubstr("found the job file"));
  EXPECT_THAT(refusal_of_trace("/dev/null"), HasSubstr("found a device"));
  for (const char* text : {"\x89HDF", "[]", "[\n{\"name\": \"step\"}\n]\n", "[\n\n]\n[1]", "[\n1\n]\n"}) {
    write("data.json", text);
    EXPECT_THAT(refusal_of_trace(folder_ / "data.json"),
                AllOf(HasSubstr("run.trace: expected a new file"), HasSubstr("a file of something else at"),
                      HasSubstr("data.json"), HasSubstr("--trace")))
        << text;
  }
  for (const std::string& text : {std::string(), std::string("[]\n"), std::string("[\n\n]\n"), trace_of_one_event()}) {
    write("trace.json", text);
    EXPECT_EQ(refusal_of_trace(folder_ / "trace.json"), "no UsageError") << text;
  }
  EXPECT_EQ(refusal_of_trace(folder_ / "new.json"), "no UsageError");
}

TEST_F(OutputFolderTest, TraceHasNoNameThatTheRunUsesInTheFolder) {
  fs::create_symlink(".", folder_ / "link");
  for (const bool is_there : {false, true}) {
    if (is_there) fs::create_directories(folder_ / "out");
    for (const char* name :
         {"out", "out/lock", "out/lock.now.1a", "out/job.json", "link/out/job.json", "out/job.yaml", "out/crashes.txt",
          "out/summary.json", "out/summary.json.writing", "out/x/../lock", "out/models/a/metrics.jsonl"}) {
      EXPECT_THAT(refusal_of_trace(folder_ / name), HasSubstr("found a name that the run itself uses")) << name;
    }
    for (const char* name : {"out/trace.json", "out/locks.json", "lock", "models"}) {
      EXPECT_EQ(refusal_of_trace(folder_ / name), "no UsageError") << name;
    }
  }
}

TEST_F(OutputFolderTest, TraceOverAFileWithoutPermissionIsRefused) {
  write("trace.json", "[]\n");
  EXPECT_EQ(refusal_of_trace(folder_ / "trace.json"), "no UsageError");
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(folder_ / "trace.json", fs::perms::none);
  const std::string found = as_nobody([this] { return refusal_of_trace(folder_ / "trace.json"); });
  EXPECT_THAT(found, HasSubstr("a file that cannot be opened (Permission denied)"));
}

TEST_F(OutputFolderTest, RecordsWithoutPermissionAreNamedWithTheReason) {
  { OutputFolder folder(job()); }
  write("out/models/a/metrics.jsonl", "");
  fs::permissions(folder_, fs::perms::all);
  const auto refusal_without = [this](const char* path) {
    const fs::perms before = fs::status(folder_ / path).permissions();
    fs::permissions(folder_ / path, fs::perms::none);
    const std::string found = as_nobody([this] {
      return refusal_of([this] { load_saved_job(folder_ / "out"); }) + "\n" +
             refusal_of([this] { read_results(folder_ / "out"); });
    });
    fs::permissions(folder_ / path, before);
    return found;
  };
  EXPECT_THAT(refusal_without("out/job.json"),
              HasSubstr("job.json: expected a file that can be read, found Permission"));
  EXPECT_THAT(refusal_without("out/models/a/metrics.jsonl"),
              HasSubstr("metrics.jsonl: expected a file that can be read, found Permission denied"));
  EXPECT_THAT(refusal_without("out/models"),
              HasSubstr("models: expected a folder that can be listed, found Permission"));
  EXPECT_THAT(refusal_without("out"), AllOf(HasSubstr("job.json: expected a file that can be read, found Permission"),
                                            HasSubstr("lock: expected a path that can be looked up")));
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
