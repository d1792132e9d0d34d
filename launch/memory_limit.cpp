#include "launch/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace tutti::launch {

namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number_in(const std::string& text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> number_in_file(const fs::path& file) {
  std::ifstream stream(file);
  std::string word;
  return stream >> word ? number_in(word) : std::nullopt;
}

std::optional<int64_t> environment_number(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : number_in(value);
}

/// The least limit on the way from this process's cgroup to the root; "max" counts as none.
int64_t cgroup_limit() {
  int64_t limit = std::numeric_limits<int64_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const fs::path root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* file = unified ? "memory.max" : "memory.limit_in_bytes";
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      if (const auto bytes = number_in_file(root / group.relative_path() / file)) limit = std::min(limit, *bytes);
      if (!group.has_relative_path()) break;
    }
  }
  return limit;
}

int64_t slurm_limit() {
  constexpr int64_t kMegabyte = 1 << 20;
  if (const auto node = environment_number("SLURM_MEM_PER_NODE")) return *node * kMegabyte;
  const auto per_cpu = environment_number("SLURM_MEM_PER_CPU");
  const auto cpus = environment_number("SLURM_CPUS_ON_NODE");
  if (per_cpu && cpus) return *per_cpu * *cpus * kMegabyte;
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t automatic_memory_bytes(int64_t local_rank_count) {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min({machine, cgroup_limit(), slurm_limit()}) / std::max<int64_t>(1, local_rank_count);
}

}  // namespace tutti::launch
