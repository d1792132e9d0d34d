#include "tests/mpi_main.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "comm/collectives.h"
#include "comm/mpi_communicator.h"

namespace tutti::tests {
namespace {

const comm::MpiSession* running_session = nullptr;

/// Prints the failures of one rank, and nothing else.
class RankFailures : public testing::EmptyTestEventListener {
 public:
  explicit RankFailures(int rank) : rank_(rank) {}

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + '.' + test.name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s failed at %s:%d\n[rank %d] %s\n", rank_, test_.c_str(),
                 result.file_name() ? result.file_name() : "", result.line_number(), rank_, result.message());
  }

  std::string test_;  // not asked of GoogleTest, which holds its lock while it reports a result
  int rank_;
};

int expected_rank_count(int argc, char** argv) {
  constexpr std::string_view kOption = "--expect-ranks=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kOption)) return std::atoi(argument.substr(kOption.size()).data());
  }
  return 0;
}

/// Runs all tests and returns 0 if all ranks passed.
int run(int argc, char** argv) {
  const comm::MpiSession session;
  running_session = &session;
  testing::InitGoogleTest(&argc, argv);
  const int expected = expected_rank_count(argc, argv);
  if (expected != session.size()) {
    std::fprintf(stderr, "Expected --expect-ranks=%d, the size of the MPI world, found %d\n", session.size(), expected);
    return 2;
  }
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.rank() > 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankFailures(session.rank()));
  const int failed = RUN_ALL_TESTS();

  comm::MpiCommunicator world(session);
  int failed_anywhere = 0;
  for (const std::string& theirs : comm::all_gather(world, std::to_string(failed), {.operation = "ending the tests"})) {
    failed_anywhere |= theirs != "0";
  }
  return failed_anywhere;
}

}  // namespace

const comm::MpiSession& mpi_session() { return *running_session; }

}  // namespace tutti::tests

int main(int argc, char** argv) {
  try {
    return tutti::tests::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
