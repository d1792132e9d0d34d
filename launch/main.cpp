// The `tutti` program: finds the command and reports what it throws.
#include <signal.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <string>
#include <vector>

#include "comm/last_words.h"
#include "data/data_error.h"
#include "launch/command.h"
#include "launch/command_table.h"
#include "launch/standard_output.h"

int main(int argc, char** argv) {
  using namespace tutti::launch;
  open_closed_streams();
  spdlog::flush_on(spdlog::level::trace);  // a job that is aborted takes along what is not yet written
  signal(SIGXFSZ, SIG_IGN);                // a limit on the size of files then fails the write, as a full disk does
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    return run_command(arguments);
  } catch (const UsageError& error) {
    tutti::comm::say_last_words(error.what());
    return kBadInput;
  } catch (const tutti::data::DataError& error) {
    tutti::comm::say_last_words(error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    tutti::comm::say_last_words(error.what());
    return kInternal;
  }
}
