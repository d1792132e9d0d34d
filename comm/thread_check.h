// The check that a communicator is used by one thread only.
#ifndef TUTTI_COMM_THREAD_CHECK_H
#define TUTTI_COMM_THREAD_CHECK_H

#include <thread>

namespace tutti::comm {

/// Remembers one thread and refuses every other. MPI libraries do not notice a call from the wrong thread; they fail
/// later and elsewhere.
class ThreadCheck {
 public:
  enum class Binding { kNow, kFirstUse };

  /// Binds to the calling thread, or to the first one that calls check().
  explicit ThreadCheck(Binding binding);

  /// Throws std::logic_error, naming `what` was called, when another thread than the bound one calls.
  void check(const char* what) const;

 private:
  mutable std::thread::id owner_;  // the id of no thread until bound
};

}  // namespace tutti::comm

#endif
