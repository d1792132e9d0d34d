#include "launch/saved_job.h"

#include <fmt/format.h>

#include "launch/command.h"
#include "launch/model_description.h"
#include "launch/text_file.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_record(const fs::path& out, const char* found) {
  throw UsageError(fmt::format(
      "{}: expected the record of a job that training wrote, found {}: the file is damaged; restore it from "
      "a copy, or train into another folder",
      (out / kJobRecord).string(), found));
}

}  // namespace

std::optional<nlohmann::json> read_job_record(const fs::path& out) {
  const std::optional<std::string> text = read_text_if_there(out / kJobRecord);
  if (!text) return std::nullopt;
  nlohmann::json record = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) refuse_record(out, "no JSON object");
  if (!record.contains("models") || !record["models"].is_object()) refuse_record(out, "no object \"models\"");
  return record;
}

nlohmann::json load_options_of(const Job& job) {
  return {{"folder", (fs::current_path() / job.folder).lexically_normal().string()}, {"settings", job.settings}};
}

void save_job(const Job& job, const fs::path& out) {
  const TextOrReason found = read_text_or_reason(job.file);
  if (!found.text) {
    throw UsageError(fmt::format("{}: expected a job file that can be read, found {}; check its path and permissions",
                                 job.file.string(), found.reason));
  }
  train::replace_file(out / "job.yaml", *found.text);
  for (const train::ModelSpec& model : job.models) write_model_description(out / "models" / model.name, model);
}

Job load_saved_job(const fs::path& out) {
  const std::optional<nlohmann::json> record = read_job_record(out);
  if (!record || !is_there(out / "job.yaml")) {
    throw UsageError(
        fmt::format("{}: expected the output folder of a job (with job.yaml and job.json), found {}; give "
                    "the folder that `run: out` names",
                    out.string(), is_there(out) ? "none" : "nothing"));
  }
  JobOptions options;
  try {
    options.settings = record->at("settings").get<std::vector<std::string>>();
    options.folder = record->at("folder").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    refuse_record(out, "no \"folder\" and \"settings\" of text");
  }
  options.out = out;
  return load_job(out / "job.yaml", options);
}

}  // namespace tutti::launch
