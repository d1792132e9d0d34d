// The command `tutti eval`.
#ifndef TUTTI_LAUNCH_EVAL_H
#define TUTTI_LAUNCH_EVAL_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Evaluates the models of an output folder with their weights. Throws UsageError for faults of the command line, of
/// the folder or of the data.
int eval_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
