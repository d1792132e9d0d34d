#include "launch/model_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::launch {

void ModelWarnings::add(const KeyReader& reader, std::string_view key, const std::string& message,
                        const std::string& model) {
  const auto [index, is_new] = index_of_message_.emplace(message, warnings_.size());
  if (is_new) warnings_.push_back({reader.fault_text(key, message), {}, 0});
  Warning& warning = warnings_[index->second];
  if (++warning.model_count <= kMostNamed) warning.first_names.push_back(model);
}

std::vector<std::string> ModelWarnings::texts() const {
  std::vector<std::string> texts;
  for (const Warning& warning : warnings_) {
    const size_t unnamed = warning.model_count - warning.first_names.size();
    texts.push_back(fmt::format("{} ({} {}{})", warning.text, warning.model_count == 1 ? "model" : "models",
                                fmt::join(warning.first_names, ", "),
                                unnamed > 0 ? fmt::format(" and {} more", unnamed) : ""));
  }
  return texts;
}

}  // namespace tutti::launch
