// Reads the results of an output folder.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "launch/command.h"
#include "launch/results.h"
#include "launch/text_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* kParts[] = {"validation", "test"};

/// Takes {"validation": {...}, "test": {...}} and a training loss under `loss_key`, where they are.
void take_metrics(const nlohmann::json& line, const char* loss_key, ModelResult& result) {
  if (line.contains(loss_key)) result.metrics["train"]["loss"] = line[loss_key];
  for (const char* part : kParts) {
    if (line.contains(part) && line[part].is_object()) result.metrics[part] = line[part];
  }
}

void take_position(const nlohmann::json& line, ModelResult& result) {
  result.epoch = line.value("epoch", result.epoch);
  result.step = line.value("step", result.step);
  result.reason = line.value("reason", result.reason);
}

std::vector<ModelResult> read_summary(const fs::path& file) {
  const nlohmann::json summary =
      nlohmann::json::parse(read_text_if_there(file).value_or(""), nullptr, /*allow_exceptions=*/false);
  try {
    return results_of(summary.at("models"));
  } catch (const nlohmann::json::exception&) {
    throw UsageError(
        fmt::format("{}: expected a summary with \"models\", found something else: the file is damaged; remove it to "
                    "see the models' own metrics",
                    file.string()));
  }
}

/// The sweep variables that model.yaml names, as text or numbers.
nlohmann::json read_labels(const fs::path& file) {
  nlohmann::json labels = nlohmann::json::object();
  const std::optional<std::string> description = read_text_if_there(file);
  if (!description) return labels;
  try {
    const YAML::Node node = YAML::Load(*description)["labels"];
    if (!node.IsDefined() || !node.IsMap()) return labels;
    for (const auto& entry : node) {
      const auto text = entry.second.as<std::string>();
      const nlohmann::json number = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      labels[entry.first.as<std::string>()] = number.is_number() ? number : nlohmann::json(text);
    }
  } catch (const YAML::Exception&) {
    throw UsageError(
        fmt::format("{}: expected the description of a model that training wrote, found something else: the file is "
                    "damaged; remove it to see the model without its sweep variables",
                    file.string()));
  }
  return labels;
}

/// What a line of metrics.jsonl adds to the result.
void take_line(const nlohmann::json& line, ModelResult& result) {
  const std::string event = line.value("event", "");
  take_position(line, result);
  take_metrics(line, event == "step" ? "loss" : "train_loss", result);
  if (event == "failed") result.state = "failed";
}

ModelResult read_model(const fs::path& folder, bool job_is_running) {
  ModelResult result;
  result.name = folder.filename().string();
  result.labels = read_labels(folder / "model.yaml");
  result.state = is_there(folder / "final" / "weights.safetensors") ? "finished"
                 : job_is_running                                   ? "running"
                                                                    : "stopped";
  std::istringstream stream(read_text_if_there(folder / "metrics.jsonl").value_or(""));
  int64_t line_number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++line_number;
    // The last line of a running job may be half written.
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) continue;
    try {
      take_line(line, result);
    } catch (const nlohmann::json::exception&) {
      throw UsageError(
          fmt::format("{}:{}: expected a line that training wrote, found values of other types: the file is damaged; "
                      "remove the line",
                      (folder / "metrics.jsonl").string(), line_number));
    }
  }
  return result;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) folders.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(
        fmt::format("{}: expected a folder that can be listed, found {}; check what it is and its "
                    "permissions",
                    folder.string(), error.code().message()));
  }
  return folders;
}

}  // namespace

std::vector<ModelResult> results_of(const nlohmann::json& reports) {
  std::vector<ModelResult> results;
  for (const nlohmann::json& model : reports) {
    ModelResult& result = results.emplace_back();
    result.name = model.value("name", "");
    result.state = model.value("state", "");
    if (model.contains("labels") && model["labels"].is_object()) result.labels = model["labels"];
    take_position(model, result);
    take_metrics(model, "train_loss", result);
  }
  return results;
}

std::vector<ModelResult> read_results(const fs::path& out) {
  const bool job_is_running = is_there(out / "lock");
  if (!job_is_running && is_there(out / "summary.json")) return read_summary(out / "summary.json");
  if (!is_there(out / "models")) {
    throw UsageError(
        fmt::format("{}: expected the output folder of a job (with `models` or `summary.json`), found {}; "
                    "give the folder that `run: out` names",
                    out.string(), is_there(out) ? "neither" : "nothing"));
  }
  std::vector<ModelResult> results;
  for (const fs::path& folder : folders_in(out / "models")) results.push_back(read_model(folder, job_is_running));
  std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return results;
}

}  // namespace tutti::launch
