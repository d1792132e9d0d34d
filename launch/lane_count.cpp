#include "launch/lane_count.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "comm/roster.h"
#include "launch/counted.h"

namespace tutti::launch {

namespace {

/// What the ranks of one host may use together.
struct Host {
  int64_t online_count = 0;
  int64_t rank_count = 0;
  int64_t lane_count = 0;           // of all its ranks
  std::map<int, int64_t> ranks_on;  // by CPU: the ranks whose masks hold it
};

/// A CPU that k ranks may use counts as 1/k of one for each of them.
int64_t lanes_of(const CpuShare& share, const Host& host, int64_t wanted) {
  if (wanted > 0) return wanted;
  double cpus = 0;
  for (const int cpu : share.cpus) cpus += 1.0 / static_cast<double>(host.ranks_on.at(cpu));
  constexpr double kRounding = 1e-6;
  return std::max<int64_t>(1, static_cast<int64_t>(cpus + kRounding));
}

void add_warnings(const std::string& name, const Host& host, std::vector<std::string>& warnings) {
  const auto cpu_count = static_cast<int64_t>(host.ranks_on.size());
  if (cpu_count < host.online_count) {
    warnings.push_back(
        fmt::format("host {}: {} may use {} of its {} cores, the others stay idle; start mpirun with --bind-to "
                    "none, or srun with more --cpus-per-task",
                    name, counted(host.rank_count, "rank"), cpu_count, host.online_count));
  }
  // Where no mask could be read there is nothing to compare with.
  if (cpu_count > 0 && host.lane_count > cpu_count) {
    warnings.push_back(fmt::format("host {}: {} with {} in all share {}; fewer ranks or lanes would be as fast", name,
                                   counted(host.rank_count, "rank"), counted(host.lane_count, "lane"),
                                   counted(cpu_count, "core")));
  }
}

}  // namespace

CpuShare own_cpu_share() {
  CpuShare share;
  share.host = comm::this_process().host;
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
  std::map<std::string, Host> hosts;
  for (const CpuShare& share : shares) {
    Host& host = hosts[share.host];
    host.online_count = share.online_count;
    ++host.rank_count;
    for (const int cpu : share.cpus) ++host.ranks_on[cpu];
  }
  for (const CpuShare& share : shares) {
    Host& host = hosts[share.host];
    host.lane_count += lanes_of(share, host, wanted);
  }
  const CpuShare& own = shares.at(static_cast<size_t>(rank));
  LaneChoice choice;
  choice.lane_count = lanes_of(own, hosts[own.host], wanted);
  for (const auto& [name, host] : hosts) add_warnings(name, host, choice.warnings);
  return choice;
}

}  // namespace tutti::launch
