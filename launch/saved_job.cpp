#include "launch/saved_job.h"

#include <fmt/format.h>

#include "launch/command.h"
#include "launch/model_description.h"
#include "launch/text_file.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

nlohmann::json load_options_of(const Job& job) {
  return {{"folder", (fs::current_path() / job.folder).lexically_normal().string()}, {"settings", job.settings}};
}

void save_job(const Job& job, const fs::path& out) {
  const std::optional<std::string> text = read_text(job.file);
  if (!text) throw UsageError(fmt::format("{}: expected a job file that can be read, found none", job.file.string()));
  train::replace_file(out / "job.yaml", *text);
  for (const train::ModelSpec& model : job.models) write_model_description(out / "models" / model.name, model);
}

Job load_saved_job(const fs::path& out) {
  const nlohmann::json record =
      nlohmann::json::parse(read_text(out / "job.json").value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("folder") || !fs::exists(out / "job.yaml")) {
    throw UsageError(
        fmt::format("{}: expected the output folder of a job (with job.yaml and job.json), found {}; give "
                    "the folder that `run: out` names",
                    out.string(), fs::exists(out) ? "none" : "nothing"));
  }
  JobOptions options;
  options.settings = record.value("settings", std::vector<std::string>());
  options.folder = record["folder"].get<std::string>();
  options.out = out;
  return load_job(out / "job.yaml", options);
}

}  // namespace tutti::launch
