#include "launch/model_description.h"

#include <yaml-cpp/yaml.h>

#include "launch/text_file.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace {

void emit(YAML::Emitter& out, const nlohmann::json& json) {
  switch (json.type()) {
    case nlohmann::json::value_t::object:
      out << YAML::BeginMap;
      for (const auto& [key, value] : json.items()) {
        out << YAML::Key << key << YAML::Value;
        emit(out, value);
      }
      out << YAML::EndMap;
      break;
    case nlohmann::json::value_t::array:
      out << YAML::Flow << YAML::BeginSeq;
      for (const nlohmann::json& item : json) emit(out, item);
      out << YAML::EndSeq;
      break;
    case nlohmann::json::value_t::string:
      out << json.get<std::string>();
      break;
    case nlohmann::json::value_t::null:
      out << YAML::Null;
      break;
    default:
      out << json.dump();  // numbers and booleans: the shortest text that reads back as the same value
  }
}

}  // namespace

std::string model_yaml(const train::ModelSpec& spec) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << spec.name << YAML::Key << "labels" << YAML::Value;
  emit(out, spec.labels);
  for (const auto& [key, value] : spec.source.items()) {
    if (key == "name" || key == "labels") continue;
    out << YAML::Key << key << YAML::Value;
    emit(out, value);
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::string model_py(const train::ModelSpec& spec) {
  // The source ends inside of __init__.
  return spec.python + (spec.double_precision ? "        self.double()\n" : "");
}

void write_model_description(const std::filesystem::path& folder, const train::ModelSpec& spec) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    if (read_text(folder / name) != text) train::replace_file(folder / name, text);
  };
  write("model.yaml", model_yaml(spec));
  if (!spec.python.empty()) write("model.py", model_py(spec));
}

}  // namespace tutti::launch
