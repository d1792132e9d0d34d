#include "comm/roster.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>

#include "comm/byte_strings.h"
#include "comm/collectives.h"

namespace tutti::comm {

Process this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return {"unknown", getpid()};
  return {host.data(), getpid()};
}

std::string Roster::describe(int rank) const {
  const auto index = static_cast<size_t>(rank);
  if (index >= processes_.size()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (host {}, process {})", rank, processes_[index].host, processes_[index].process_id);
}

std::string Roster::describe(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + describe(rank);
  return text;
}

Roster collect_roster(Communicator& communicator, const Process& own, const Deadline& deadline) {
  const std::vector<std::string> words = {own.host, std::to_string(own.process_id)};
  std::vector<Process> processes;
  for (const std::string& packed : all_gather(communicator, pack(words), deadline)) {
    const std::vector<std::string> theirs = unpack(packed);
    processes.push_back({theirs.at(0), std::stoll(theirs.at(1))});
  }
  return Roster(std::move(processes));
}

}  // namespace tutti::comm
