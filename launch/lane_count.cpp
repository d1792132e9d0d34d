#include "launch/lane_count.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "launch/counted.h"

namespace tutti::launch {

CpuShare own_cpu_share() {
  CpuShare share;
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  share.host = name;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) share.cpus.push_back(cpu);
    }
  }
  share.online_count = sysconf(_SC_NPROCESSORS_ONLN);
  return share;
}

std::string to_text(const CpuShare& share) {
  return nlohmann::json({{"host", share.host}, {"cpus", share.cpus}, {"online", share.online_count}}).dump();
}

CpuShare cpu_share_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {json.at("host").get<std::string>(), json.at("cpus").get<std::vector<int>>(),
          json.at("online").get<int64_t>()};
}

LaneChoice choose_lanes(const std::vector<CpuShare>& shares, int rank, int64_t wanted) {
  const CpuShare& own = shares.at(static_cast<size_t>(rank));
  std::map<std::string, std::set<int>> used;
  std::map<std::string, int64_t> online, rank_count;
  int64_t sharing = 0;
  for (const CpuShare& share : shares) {
    used[share.host].insert(share.cpus.begin(), share.cpus.end());
    online[share.host] = share.online_count;
    ++rank_count[share.host];
    sharing += share.host == own.host && share.cpus == own.cpus ? 1 : 0;
  }
  LaneChoice choice;
  const auto cpu_count = static_cast<int64_t>(own.cpus.size());
  choice.lane_count = wanted > 0 ? wanted : std::max<int64_t>(1, cpu_count / std::max<int64_t>(1, sharing));
  for (const auto& [host, cpus] : used) {
    const auto count = static_cast<int64_t>(cpus.size());
    if (count < online[host]) {
      choice.warnings.push_back(
          fmt::format("host {}: {} may use {} of its {} cores, the others stay idle; start mpirun with --bind-to "
                      "none, or srun with more --cpus-per-task",
                      host, counted(rank_count[host], "rank"), count, online[host]));
    }
    if (wanted * rank_count[host] > count) {
      choice.warnings.push_back(fmt::format("host {}: {} of {} share {}; fewer lanes would be as fast", host,
                                            counted(rank_count[host], "rank"), counted(wanted, "lane"),
                                            counted(count, "core")));
    }
  }
  return choice;
}

}  // namespace tutti::launch
