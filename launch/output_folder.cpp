#include "launch/output_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "launch/command.h"
#include "launch/saved_job.h"
#include "launch/text_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

/// The keys, as paths, in which two descriptions differ.
std::vector<std::string> differing_keys(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> keys;
  for (const auto& change : nlohmann::json::diff(before, now)) {
    std::string path = change.at("path").get<std::string>().substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    keys.push_back(path);
  }
  return keys;
}

/// Makes the folder, or accepts one that is empty, or that a run has begun to fill: its first files are lock and
/// record.
void make_or_accept(const fs::path& folder) {
  std::vector<std::string> others;
  try {
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("lock") && !name.starts_with(kJobRecord)) others.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(
        fmt::format("run.out: expected a folder that can be written, found {}: {}; choose another with --out",
                    folder.string(), error.code().message()));
  }
  if (others.empty() || is_there(folder / kJobRecord)) return;
  throw UsageError(
      fmt::format("run.out: expected a folder that is new, empty, or an earlier run's (with {}), found {} "
                  "with {}; choose another with --out",
                  kJobRecord, folder.string(), *std::ranges::min_element(others)));
}

void warn_of_models_without_block(const nlohmann::json& models, const Job& job) {
  std::vector<std::string> gone;
  for (const auto& known : models.items()) {
    const auto has_its_name = [&](const train::ModelSpec& model) { return model.name == known.key(); };
    if (std::ranges::none_of(job.models, has_its_name)) gone.push_back(known.key());
  }
  if (gone.empty()) return;
  spdlog::warn(
      "{}: expected all models of the earlier run in the job file, found none named {}; what they left stays as "
      "it is, and they do not train on",
      job.run.out.string(), fmt::join(gone, ", "));
}

}  // namespace

OutputFolder::OutputFolder(const Job& job) : path_(job.run.out) {
  make_or_accept(path_);
  lock_.emplace(path_, kHeartbeat);
  compare_or_record(job);
}

void OutputFolder::compare_or_record(const Job& job) {
  const std::optional<nlohmann::json> before = read_job_record(path_);
  if (before && !job.run.resume) {
    throw UsageError(
        fmt::format("run.out: expected a folder without output, found an earlier run's in {}; go on with "
                    "it by --resume, or choose another folder with --out",
                    path_.string()));
  }
  nlohmann::json now = {{"format", 1}, {"models", nlohmann::json::object()}};
  if (before) now["models"] = before->at("models");
  warn_of_models_without_block(now["models"], job);
  for (const train::ModelSpec& model : job.models) {
    const auto known = now["models"].find(model.name);
    if (known != now["models"].end() && *known != model.source) {
      throw UsageError(
          fmt::format("model {}: --resume expects the settings it began with, found other values of {}; "
                      "restore them, or give the changed model another name",
                      model.name, fmt::join(differing_keys(*known, model.source), ", ")));
    }
    now["models"][model.name] = model.source;
  }
  now.update(load_options_of(job));
  replace_file(path_ / kJobRecord, now.dump(1) + "\n");  // first: it marks the folder as ours
  save_job(job, path_);
}

}  // namespace tutti::launch
