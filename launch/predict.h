// The command `tutti predict`.
#ifndef TUTTI_LAUNCH_PREDICT_H
#define TUTTI_LAUNCH_PREDICT_H

#include <string>
#include <vector>

namespace tutti::launch {

/// Writes a trained model's outputs for every row of a data set, in order. Throws UsageError for faults of the command
/// line, of the folder or of the data.
int predict_command(const std::vector<std::string>& arguments);

}  // namespace tutti::launch

#endif
