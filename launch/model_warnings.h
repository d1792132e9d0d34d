// Warnings that many models of a job may share.
#ifndef TUTTI_LAUNCH_MODEL_WARNINGS_H
#define TUTTI_LAUNCH_MODEL_WARNINGS_H

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launch/key_reader.h"

namespace tutti::launch {

/// What is allowed in a model but likely not meant. The same message for many models, as for the variants of a sweep,
/// is one warning, at the first model's place.
class ModelWarnings {
 public:
  void add(const KeyReader& reader, std::string_view key, const std::string& message, const std::string& model);

  /// "FILE:LINE: PATH: MESSAGE (models a, b, c and 27 more)", in the order of their first models.
  std::vector<std::string> texts() const;

 private:
  struct Warning {
    std::string text;                      // with the first model's place
    std::vector<std::string> first_names;  // at most kMostNamed
    size_t model_count = 0;
  };
  static constexpr size_t kMostNamed = 3;

  std::vector<Warning> warnings_;
  std::unordered_map<std::string, size_t> index_of_message_;
};

}  // namespace tutti::launch

#endif
