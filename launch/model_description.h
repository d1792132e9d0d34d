// What a model is, as files for people and PyTorch: model.yaml and model.py.
#ifndef TUTTI_LAUNCH_MODEL_DESCRIPTION_H
#define TUTTI_LAUNCH_MODEL_DESCRIPTION_H

#include <filesystem>
#include <string>

#include "src/train/model_spec.h"

namespace tutti::launch {

/// A model's settings as YAML: `name`, `labels` (sweep variables and their values), and every key that changes its
/// numbers, with defaults written out.
std::string model_yaml(const train::ModelSpec& spec);

/// The network as a PyTorch module of the model's precision.
std::string model_py(const train::ModelSpec& spec);

/// Writes model.yaml and model.py into `folder`, which is made if absent. Files that hold the same text already stay.
/// Throws std::system_error naming the file.
void write_model_description(const std::filesystem::path& folder, const train::ModelSpec& spec);

}  // namespace tutti::launch

#endif
