// The `tutti` program: finds the command and reports what it throws.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "data/data_error.h"
#include "launch/command.h"
#include "launch/command_table.h"

int main(int argc, char** argv) {
  using namespace tutti::launch;
  signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files then fails the write, as a full disk does
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    return run_command(arguments);
  } catch (const UsageError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return kBadInput;
  } catch (const tutti::data::DataError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return kInternal;
  }
}
