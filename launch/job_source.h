// The canonical description of a model that is hashed.
#ifndef TUTTI_LAUNCH_JOB_SOURCE_H
#define TUTTI_LAUNCH_JOB_SOURCE_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job.h"
#include "launch/key_reader.h"

namespace tutti::launch {

/// Everything of a model that changes its numbers, with defaults written out: the bit-relevant keys of the job file,
/// `network` (a list of layers, or the object that stands for an archive), methods, the data's settings and
/// fingerprints, and the hash of the file with first weights.
nlohmann::json source_of(const KeyReader& model, const train::ModelSpec& spec, const nlohmann::json& network,
                         RunSpec::Reduction reduction, Faults& faults);

/// Of the whole content; of an empty one where the file cannot be read, which whoever needs it will tell.
std::string hash_of_file(const std::filesystem::path& file);

/// The hash of names and sources, in order.
uint64_t hash_of(const std::vector<train::ModelSpec>& models);

}  // namespace tutti::launch

#endif
