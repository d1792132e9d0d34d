// The command `tutti show`: a table of the models of a finished or running job.
#ifndef TUTTI_LAUNCH_SHOW_H
#define TUTTI_LAUNCH_SHOW_H

#include <string>
#include <vector>

#include "launch/results.h"

namespace tutti::launch {

/// Runs `tutti show ARGUMENTS`, and returns its exit code. Throws UsageError for arguments that make no sense.
int show_command(const std::vector<std::string>& arguments);

/// The models as a table for people, in the order given.
std::string model_table(const std::vector<ModelResult>& results);

/// The models as comma-separated values (RFC 4180), one column for each label and metric.
std::string model_csv(const std::vector<ModelResult>& results);

/// The models as a JSON array.
nlohmann::json model_json(const std::vector<ModelResult>& results);

/// Groups in the same three forms.
std::string group_table(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                        const std::string& metric);
std::string group_csv(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                      const std::string& metric);
nlohmann::json group_json(const std::vector<ResultGroup>& groups, const std::vector<std::string>& variables,
                          const std::string& metric);

}  // namespace tutti::launch

#endif
