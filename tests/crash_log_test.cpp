#include "src/train/crash_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "data/fault_guard.h"

namespace tutti::train {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kRun = "17a-42";

/// Recursion without an end.
int overflow(int depth) {
  const volatile int kept = depth;
  return kept < 0 ? 0 : overflow(kept + 1) + kept;
}

class CrashLogTest : public testing::Test {
 protected:
  CrashLogTest() { std::filesystem::remove(file_); }
  ~CrashLogTest() override { std::filesystem::remove(file_); }

  std::map<std::string, int64_t> counts() const { return CrashLog::counts(file_); }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("tutti-crash-log-test-" + std::to_string(getpid()));
  const std::string first_ = "mlp-w16-lr0.01", second_ = "signal 11";
};

using CrashLogDeathTest = CrashLogTest;

TEST_F(CrashLogDeathTest, CrashIsPutDownToTheModelOfItsThread) {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE}) {
    EXPECT_DEATH(
        {
          CrashLog log;
          log.open(file_, std::to_string(number));
          const Suspect outer(second_);
          std::thread([&] {
            const Suspect suspect(first_);
            std::raise(number);
          }).join();
        },
        "");
  }
  EXPECT_THAT(counts(), UnorderedElementsAre(Pair(first_, 3)));
}

TEST_F(CrashLogDeathTest, RealFaultIsNotedOnceAndStillEndsTheProcess) {
  EXPECT_DEATH(
      {
        CrashLog log;
        log.open(file_, kRun);
        const Suspect suspect(second_);
        void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile int*>(page) = 1;
      },
      "");
  EXPECT_THAT(counts(), UnorderedElementsAre(Pair(second_, 1)));
}

TEST_F(CrashLogDeathTest, OverflowOfTheStackIsNoted) {
  EXPECT_DEATH(
      {
        CrashLog log;
        log.open(file_, kRun);
        std::thread([&] {
          const SignalStack stack;
          const Suspect suspect(first_);
          overflow(0);
        }).join();
      },
      "");
  EXPECT_THAT(counts(), UnorderedElementsAre(Pair(first_, 1)));
}

TEST_F(CrashLogDeathTest, CrashOutsideAModelsWorkAccusesNobody) {
  EXPECT_DEATH(
      {
        CrashLog log;
        log.open(file_, kRun);
        { const Suspect suspect(first_); }
        std::abort();
      },
      "");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(CrashLogTest, FaultOfAFileThatWasCutIsNoCrash) {
  CrashLog log;
  log.open(file_, kRun);
  data::install_fault_guard();
  const Suspect suspect(first_);
  std::FILE* cut = std::tmpfile();
  ASSERT_EQ(ftruncate(fileno(cut), 4096), 0);
  auto* bytes = static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(cut), 0));
  ASSERT_EQ(ftruncate(fileno(cut), 0), 0);
  std::vector<std::byte> copy(64);
  EXPECT_FALSE(data::guarded_copy({bytes, copy.size()}, copy));
  EXPECT_FALSE(std::filesystem::exists(file_));
  munmap(bytes, 4096);
  std::fclose(cut);
}

TEST_F(CrashLogTest, ARunCountsOnceAndLinesThatNameNoModelDoNotCount) {
  EXPECT_THAT(counts(), IsEmpty());
  std::ofstream(file_) << "a signal 11 run 1\n\nnonsense\na signal 7 run 2\na signal 7 run 2\nb signal 6 run 2\n";
  EXPECT_THAT(counts(), UnorderedElementsAre(Pair("a", 2), Pair("b", 1)));
}

}  // namespace
}  // namespace tutti::train
