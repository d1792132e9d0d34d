// Runs one test body on every back end of the message layer: threads of one process, and MPI.
#ifndef TUTTI_TESTS_BACK_ENDS_H
#define TUTTI_TESTS_BACK_ENDS_H

#include <gtest/gtest.h>

#include <vector>

#include "comm/deadline.h"
#include "comm/mpi_communicator.h"
#include "tests/local_ranks.h"
#include "tests/mpi_main.h"

namespace tutti::tests {

enum class BackEnd { kLocal, kMpi };

inline void PrintTo(BackEnd back_end, std::ostream* out) { *out << (back_end == BackEnd::kMpi ? "Mpi" : "Local"); }

/// A test whose body runs on as many ranks as the program was started with.
class OnBothBackEnds : public testing::TestWithParam<BackEnd> {
 protected:
  void on_ranks(const RankBody& body) {
    if (GetParam() == BackEnd::kLocal) return on_local_ranks(mpi_session().size(), body);
    comm::MpiCommunicator communicator(mpi_session());
    body(communicator);
  }
};

inline auto both_back_ends() { return testing::Values(BackEnd::kLocal, BackEnd::kMpi); }

/// Tests `pending` until it is complete, for at most ten seconds.
inline void complete(comm::Pending& pending) {
  comm::wait_until(
      {std::chrono::seconds(10), "completing a message"}, [&] { return pending.test(); },
      [] { return std::vector<int>(); });
}

}  // namespace tutti::tests

#endif
