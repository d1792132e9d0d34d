// The copy of a job that its output folder keeps, and how other commands load it again.
#ifndef TUTTI_LAUNCH_SAVED_JOB_H
#define TUTTI_LAUNCH_SAVED_JOB_H

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "launch/job.h"

namespace tutti::launch {

inline constexpr const char* kJobRecord = "job.json";  ///< in the output folder

/// OUT/job.json: an object with "models", an object. None where there is no such file; throws UsageError where it holds
/// anything else.
std::optional<nlohmann::json> read_job_record(const std::filesystem::path& out);

/// What must be known beside the job file's text to load it again: {"folder": where relative paths of data start,
/// "settings": the --set options}.
nlohmann::json load_options_of(const Job& job);

/// Leaves OUT/job.yaml, the text of the job file, and every model's description in OUT/models/NAME. Whoever calls it
/// puts load_options_of(job) into OUT/job.json. Throws std::system_error naming the file.
void save_job(const Job& job, const std::filesystem::path& out);

/// Loads the job of an output folder, from the folder alone; data lie where they lay. Throws UsageError when `out` has
/// no job, JobError when its data are gone.
Job load_saved_job(const std::filesystem::path& out);

}  // namespace tutti::launch

#endif
