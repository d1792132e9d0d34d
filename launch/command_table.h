// The commands of the `tutti` program.
#ifndef TUTTI_LAUNCH_COMMAND_TABLE_H
#define TUTTI_LAUNCH_COMMAND_TABLE_H

#include <string>
#include <vector>

namespace tutti::launch {

struct Command {
  std::string name;
  std::string summary;
  int (*run)(const std::vector<std::string>& arguments);
};

/// All commands, in the order of `tutti --help`.
const std::vector<Command>& commands();

/// Runs the command that `arguments` begin with; without any, or with --help, prints the list; --version is `version`.
/// Throws UsageError naming the nearest command for an unknown one.
int run_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
