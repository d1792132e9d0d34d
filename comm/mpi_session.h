// MPI from its start to its end, and the check of its return codes.
#ifndef TUTTI_COMM_MPI_SESSION_H
#define TUTTI_COMM_MPI_SESSION_H

#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>

#include "comm/thread_check.h"

namespace tutti::comm {

/// An MPI call that failed.
class MpiError : public std::runtime_error {
 public:
  MpiError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// Throws MpiError unless `code` is MPI_SUCCESS.
void check_mpi(int code, std::source_location where = std::source_location::current());

/// Name and version of the MPI library, as in "Open MPI v4.1.4". May be called without a session.
std::string mpi_library_version();

/// What the environment says of how this process was launched.
struct LaunchEnvironment {
  std::optional<int> slurm_step_task_count;  ///< tasks of the srun step this process is part of
  bool under_mpirun = false;

  static LaunchEnvironment read();
};

/// Throws std::runtime_error, with advice, when srun started several tasks and each became an MPI world of its own.
void check_launch(const LaunchEnvironment& environment, int world_size);

/// The life of MPI in this process. Constructed and destroyed by the main thread, which is thereby the communication
/// thread. Both are collective over all ranks, and block; a rank that leaves by an error must abort the job instead
/// (Communicator::abort). Left by an exception, which nobody has printed then, the session ends the job itself, with
/// exit code 70.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Place of this rank among the ranks of its node, and their number.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  /// The communication thread.
  const ThreadCheck& thread() const { return thread_; }

 private:
  ThreadCheck thread_{ThreadCheck::Binding::kNow};
  int uncaught_exception_count_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace tutti::comm

#endif
