// Runs a test body on ranks that are threads of one process.
#ifndef TUTTI_TESTS_LOCAL_RANKS_H
#define TUTTI_TESTS_LOCAL_RANKS_H

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "comm/local_communicator.h"

namespace tutti::tests {

using RankBody = std::function<void(comm::Communicator&)>;

/// Runs `body` on `size` ranks that are threads. Rethrows the first rank's exception, if there is one.
inline void on_local_ranks(int size, const RankBody& body) {
  const auto communicators = comm::LocalCommunicator::create(size);
  std::vector<std::exception_ptr> errors(communicators.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*communicators[rank]);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tutti::tests

#endif
