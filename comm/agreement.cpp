#include "comm/agreement.h"

#include <fmt/core.h>

#include <algorithm>

#include "comm/byte_strings.h"
#include "comm/collectives.h"

namespace tutti::comm {
namespace {

constexpr size_t kExcerptLength = 160;
constexpr size_t kContextLength = 40;
constexpr int kLargestFaultCount = 8;

/// A long value's part around the first byte in which it differs from the other.
std::string excerpt(const std::string& value, const std::string& other) {
  if (value.size() <= kExcerptLength) return '"' + value + '"';
  const auto differing = std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first;
  const auto offset = static_cast<size_t>(differing - value.begin());
  const size_t begin = offset > kContextLength ? offset - kContextLength : 0;
  return fmt::format("\"{}{}{}\" ({} bytes, from byte {})", begin > 0 ? "..." : "", value.substr(begin, kExcerptLength),
                     begin + kExcerptLength < value.size() ? "..." : "", value.size(), begin);
}

/// What is wrong with one rank's labels and values, one line each.
std::vector<std::string> differences(const std::vector<std::string>& expected, const std::vector<std::string>& found,
                                     const std::string& name) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::max(expected.size(), found.size()); i += 2) {
    if (i >= found.size() || i >= expected.size() || expected[i] != found[i]) {
      lines.push_back(fmt::format("{}: expected {}, found {}", name,
                                  i < expected.size() ? '"' + expected[i] + '"' : "nothing more to compare",
                                  i < found.size() ? '"' + found[i] + '"' : "nothing more to compare"));
      return lines;
    }
    if (expected[i + 1] == found[i + 1]) continue;
    lines.push_back(fmt::format("{}, {}: expected {}, found {}", name, expected[i],
                                excerpt(expected[i + 1], found[i + 1]), excerpt(found[i + 1], expected[i + 1])));
  }
  return lines;
}

/// All ranks' differences from rank 0 as a message; empty when there are none.
std::string complaint(const std::vector<std::string>& gathered, const Roster& roster) {
  std::string text;
  int count = 0;
  for (size_t rank = 1; rank < gathered.size(); ++rank) {
    for (const std::string& line :
         differences(unpack(gathered[0]), unpack(gathered[rank]), roster.describe(static_cast<int>(rank)))) {
      if (++count <= kLargestFaultCount) text += "\n  " + line;
    }
  }
  if (count == 0) return {};
  if (count > kLargestFaultCount) text += fmt::format("\n  and {} more", count - kLargestFaultCount);
  return fmt::format(
      "The ranks differ from rank 0, whose values are the expected ones:{}\n"
      "Start all ranks with the same program, the same job file and the same options.",
      text);
}

}  // namespace

void agree(Communicator& communicator, std::span<const LabelledValue> values, const Deadline& deadline) {
  std::vector<std::string> own;
  for (const LabelledValue& value : values) {
    own.push_back(value.label);
    own.push_back(value.value);
  }
  const std::vector<std::string> gathered = gather(communicator, pack(own), deadline);
  const std::string verdict = complaint(gathered, deadline.roster ? *deadline.roster : Roster());
  const std::string message = broadcast(communicator, verdict, deadline);
  if (!message.empty()) throw Disagreement(message);
}

}  // namespace tutti::comm
