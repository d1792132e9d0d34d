#include "comm/mpi_session.h"

#include <fmt/core.h>
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "comm/last_words.h"

namespace tutti::comm {
namespace {

std::optional<int> integer_variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::atoi(text);
}

}  // namespace

void check_mpi(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  std::string_view file = where.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  throw MpiError(code, fmt::format("MPI failed in {} ({}:{}): {}", where.function_name(), file, where.line(),
                                   std::string_view(text.data(), static_cast<size_t>(length))));
}

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length));
  const std::string_view version(text.data());
  return std::string(version.substr(0, version.find_first_of(",\n")));
}

LaunchEnvironment LaunchEnvironment::read() {
  return {integer_variable("SLURM_STEP_NUM_TASKS"), std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr};
}

void check_launch(const LaunchEnvironment& environment, int world_size) {
  const int expected = environment.slurm_step_task_count.value_or(1);
  if (environment.under_mpirun || world_size > 1 || expected <= 1) return;
  throw std::runtime_error(
      fmt::format("Expected one MPI job of {} ranks (SLURM_STEP_NUM_TASKS), found a job of 1 rank: srun started {} "
                  "separate jobs. Start the program with srun --mpi=pmix, or with mpirun inside the allocation.",
                  expected, expected));
}

MpiSession::MpiSession() : uncaught_exception_count_(std::uncaught_exceptions()) {
  const LaunchEnvironment environment = LaunchEnvironment::read();  // MPI sets variables of its own when it starts
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  if (provided < MPI_THREAD_FUNNELED) {
    throw std::runtime_error(
        fmt::format("Expected an MPI library with thread support (MPI_THREAD_FUNNELED), found {} "
                    "without it. Use another build of the library.",
                    mpi_library_version()));
  }
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  check_launch(environment, size_);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  check_mpi(MPI_Comm_rank(node, &local_rank_));
  check_mpi(MPI_Comm_size(node, &local_size_));
  check_mpi(MPI_Comm_free(&node));
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > uncaught_exception_count_) {
    say_last_words(fmt::format("rank {} left by an error; the job is ended on all ranks", rank_));
    MPI_Abort(MPI_COMM_WORLD, kInternalErrorExit);
  }
  if (MPI_Finalize() != MPI_SUCCESS) say_last_words(fmt::format("rank {}: MPI did not end cleanly", rank_));
}

}  // namespace tutti::comm
