// The `tutti` program: finds the command and reports what it throws.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "comm/last_words.h"
#include "data/data_error.h"
#include "launch/command.h"
#include "launch/command_table.h"
#include "launch/standard_output.h"
#include "src/train/fault_text.h"

namespace tutti::launch {
namespace {

/// Log lines go to standard error, for standard output may be data (`--json`). They have no colours: under mpirun each
/// rank has a terminal of its own, whatever the launcher's output is.
void set_up_log() {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  spdlog::flush_on(spdlog::level::trace);  // a job that is aborted takes along what is not yet written
}

[[noreturn]] void refuse_output(const std::string& reason) {
  throw UsageError(
      fmt::format("standard output: expected to write all that the command prints, found {}; free space there, or send "
                  "it elsewhere",
                  reason));
}

/// Runs the command and writes what it printed. What a run has dropped already (OutputThread) is no fault.
int run_and_write(const std::vector<std::string>& arguments) {
  try {
    const int code = run_command(arguments);
    if (std::fflush(stdout) != 0) refuse_output(std::strerror(errno));
    if (std::ferror(stdout) != 0) refuse_output("that some of it was lost");
    return code;
  } catch (const std::system_error& error) {
    // fmt::print() throws where standard output takes no more.
    if (std::ferror(stdout) != 0) refuse_output(error.code().message());
    throw;
  }
}

}  // namespace
}  // namespace tutti::launch

int main(int argc, char** argv) {
  using namespace tutti::launch;
  open_closed_streams();
  set_up_log();
  signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files then fails the write, as a full disk does
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    return run_and_write(arguments);
  } catch (const UsageError& error) {
    tutti::comm::say_last_words(error.what());
    return kBadInput;
  } catch (const tutti::data::DataError& error) {
    tutti::comm::say_last_words(error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    tutti::comm::say_last_words(tutti::train::fault_text(error));
    return kInternal;
  }
}
