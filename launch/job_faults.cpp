// The faults of a job file and their text.
#include "launch/job_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "launch/job.h"
#include "src/graph/nearest_name.h"

namespace tutti::launch {
Faults::Faults(std::string file, std::vector<std::string> settings)
    : file_(std::move(file)), settings_(std::move(settings)) {}

std::string Faults::text_of(const Place& place) const {
  if (place.setting >= 0) return "--set " + settings_.at(static_cast<size_t>(place.setting));
  return place.line > 0 ? fmt::format("{}:{}", file_, place.line) : file_;
}

std::string Faults::text_of(const Place& place, std::string_view path, std::string_view message) const {
  return fmt::format("{}: {}{}{}", text_of(place), path, path.empty() ? "" : ": ", message);
}

void Faults::add(const Place& place, std::string_view path, std::string_view message) {
  ++added_;
  if (full()) return;
  std::string fault = text_of(place, path, message);
  if (std::find(faults_.begin(), faults_.end(), fault) == faults_.end()) faults_.push_back(std::move(fault));
}

void Faults::throw_if_any() const {
  if (faults_.empty()) return;
  std::vector<std::string> faults = faults_;
  if (full()) faults.push_back(fmt::format("{}: stopped after {} faults", file_, kLimit));
  throw JobError(std::move(faults));
}

std::string expected_one_of(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kMostNamed = 40;
  if (known.empty()) return "expected none";
  if (known.size() == 1) return fmt::format("expected `{}`", known.front());
  if (known.size() > kMostNamed) return fmt::format("did you mean `{}`?", graph::nearest_name(word, known));
  return fmt::format("expected one of {}; did you mean `{}`?", fmt::join(known, ", "),
                     graph::nearest_name(word, known));
}

}  // namespace tutti::launch
