#include "launch/trace_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string_view>
#include <system_error>

#include "data/file_kind.h"

namespace tutti::launch {

namespace {

namespace fs = std::filesystem;

/// Empty, or the list of events that a run writes and that it begins with.
bool may_be_a_trace(const fs::path& file) {
  std::array<char, 3> first = {};
  std::ifstream stream(file, std::ios::binary);
  stream.read(first.data(), std::ssize(first));
  const std::string_view begin(first.data(), static_cast<size_t>(stream.gcount()));
  return begin.empty() || begin == "[]\n" || begin == "[\n{" || begin == "[\n\n";
}

}  // namespace

void check_trace_file(const Job& job) {
  const fs::path& trace = job.run.trace;
  std::error_code error;
  if (trace.empty() || !fs::exists(trace, error)) return;
  std::string found = data::other_than_regular_file(trace);
  if (found.empty() && fs::equivalent(trace, job.file, error)) found = "the job file";
  if (found.empty() && !may_be_a_trace(trace)) found = "a file of something else";
  if (found.empty()) return;
  throw UsageError(
      fmt::format("run.trace: expected a new file, or the trace of an earlier run to be replaced, found {} at {}; "
                  "choose another with --trace",
                  found, trace.string()));
}

}  // namespace tutti::launch
