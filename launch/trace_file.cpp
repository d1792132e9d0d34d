#include "launch/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "data/file_kind.h"
#include "launch/command.h"
#include "launch/saved_job.h"

namespace tutti::launch {

namespace {

namespace fs = std::filesystem;

/// With all links in its folder followed; the file itself is replaced, not what it may link to.
fs::path resolved(const fs::path& file) {
  const fs::path whole = fs::absolute(file).lexically_normal();
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(whole.parent_path(), error);
  return error ? whole : folder / whole.filename();
}

/// Whether the run writes a file of that path, or makes a folder of it.
bool is_of_the_run(const fs::path& file, const fs::path& out) {
  const fs::path inside = resolved(file).lexically_relative(resolved(out / "."));
  if (inside.empty()) return false;
  const std::string first = inside.begin()->string();
  const auto names_it = [&first](std::string_view name) {
    return first.starts_with(name) && (first.size() == name.size() || first[name.size()] == '.');  // "lock.stale.1a"
  };
  constexpr std::string_view kOwn[] = {"lock", kJobRecord, "job.yaml", "crashes.txt", "summary.json", "models"};
  return first == "." || std::ranges::any_of(kOwn, names_it);
}

/// Whether a line of a trace is an event that a run wrote.
bool is_event(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto has_key = [&event](const char* key) { return event.contains(key); };
  return event.is_object() &&
         std::ranges::all_of(std::array{"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"}, has_key);
}

/// What else is there than an empty file, or the list of events that a run writes; empty for those two.
std::string other_than_a_trace(const fs::path& file) {
  constexpr size_t kMostBytes = size_t{1} << 16;  // of the first event
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return fmt::format("a file that cannot be opened ({})", std::strerror(errno));
  std::string begin(kMostBytes, '\0');
  stream.read(begin.data(), std::ssize(begin));
  if (stream.bad()) return "a file that cannot be read";
  begin.resize(static_cast<size_t>(stream.gcount()));
  if (begin.empty() || begin == "[]\n" || begin == "[\n\n]\n") return "";
  constexpr std::string_view kOpening = "[\n";
  const std::string_view rest = std::string_view(begin).substr(std::min(begin.size(), kOpening.size()));
  return begin.starts_with(kOpening) && is_event(rest.substr(0, rest.find('\n'))) ? "" : "a file of something else";
}

}  // namespace

void check_trace_file(const Job& job) {
  const fs::path& trace = job.run.trace;
  if (trace.empty()) return;
  std::error_code error;
  std::string found = is_of_the_run(trace, job.run.out) ? "a name that the run itself uses in its output folder" : "";
  if (found.empty()) found = data::other_than_regular_file(trace);
  if (found.empty() && fs::equivalent(trace, job.file, error)) found = "the job file";
  if (found.empty() && fs::status(trace, error).type() != fs::file_type::not_found) found = other_than_a_trace(trace);
  if (found.empty()) return;
  throw UsageError(
      fmt::format("run.trace: expected a new file, or the trace of an earlier run to be replaced, found {} at {}; "
                  "choose another with --trace",
                  found, trace.string()));
}

}  // namespace tutti::launch
