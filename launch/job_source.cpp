// The canonical description of a model that is hashed.
#include "launch/job_source.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "data/fnv_hash.h"

namespace tutti::launch {
namespace {

nlohmann::json fingerprint_of(const std::shared_ptr<const data::DataSet>& set) {
  return set ? nlohmann::json(fmt::format("{:016x}", set->fingerprint())) : nlohmann::json();
}

nlohmann::json data_source(const train::ModelData& data) {
  return {{"train", fingerprint_of(data.train)},
          {"validation", data.held_out > 0 ? nlohmann::json() : fingerprint_of(data.validation)},
          {"test", fingerprint_of(data.test)},
          {"held_out", data.held_out},
          {"seed", data.seed},
          {"flip", data.augmentation.flip},
          {"crop", data.augmentation.crop},
          {"noise", data.augmentation.noise},
          {"normalise", data.normalise}};
}

nlohmann::json rules_source(const std::vector<train::ParameterRule>& rules) {
  const auto json_of_optional = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  nlohmann::json list = nlohmann::json::array();
  for (const train::ParameterRule& rule : rules) {
    list.push_back({{"match", rule.pattern},
                    {"frozen", rule.frozen},
                    {"lr_factor", json_of_optional(rule.lr_factor)},
                    {"weight_decay", json_of_optional(rule.weight_decay)}});
  }
  return list;
}

}  // namespace

std::string hash_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> chunk(1 << 20);
  uint64_t hash = data::kFnvBegin;
  do {
    stream.read(chunk.data(), std::ssize(chunk));
    hash = data::fnv_hash({chunk.data(), static_cast<size_t>(stream.gcount())}, hash);
  } while (stream);
  return fmt::format("{:016x}", hash);
}

nlohmann::json source_of(const KeyReader& model, const train::ModelSpec& spec, const nlohmann::json& network,
                         RunSpec::Reduction reduction, Faults& faults) {
  const auto method = [&](std::string_view key, const std::vector<Block>& blocks) {
    const Node fallback = Node::scalar(model.default_text(key), {});
    const Node* written = model.node(key);
    return resolved_method(written != nullptr ? *written : fallback, model.path_of(key), blocks, key, faults);
  };
  const auto block = [&](std::string_view key, const Block& declared) -> nlohmann::json {
    const Node* written = model.node(key);
    return written == nullptr ? nlohmann::json() : KeyReader(declared, *written, model.path_of(key), faults).resolved();
  };
  nlohmann::json source = model.resolved();
  source["layers"] = network.is_array() ? network : nlohmann::json();
  source["graph"] = network.is_object() ? network : nlohmann::json();
  source["loss"] = method("loss", loss_blocks());
  source["optimizer"] = method("optimizer", optimizer_blocks());
  source["schedule"] = method("schedule", schedule_blocks());
  source["clip"] = block("clip", clip_block());
  source["early_stopping"] = block("early_stopping", early_stopping_block());
  source["parameters"] = rules_source(spec.parameter_rules);
  source["data"] = data_source(spec.data);
  source["input"] = spec.data.inputs;
  source["target"] = spec.data.target;
  source["epochs"] = spec.epochs;
  source["init"] = spec.init_file.empty() ? nlohmann::json() : nlohmann::json(hash_of_file(spec.init_file));
  source["reduction"] = reduction == RunSpec::Reduction::kFast ? "fast" : "exact";
  return source;
}

uint64_t hash_of(const std::vector<train::ModelSpec>& models) {
  std::string text;
  for (const train::ModelSpec& model : models) text += model.name + "\n" + model.source.dump() + "\n";
  return data::fnv_hash(text);
}

}  // namespace tutti::launch
