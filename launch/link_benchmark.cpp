#include "launch/link_benchmark.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "comm/collectives.h"
#include "comm/tree_sum.h"
#include "partition/placing.h"

namespace tutti::launch {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPingTag = 1;
constexpr int kPongTag = 2;
constexpr int kSumTag = 4;
constexpr size_t kSmallBytes = 64;
constexpr size_t kLargeBytes = 4 << 20;
constexpr int kRepeats = 20;
constexpr int kMostRanksForAllPairs = 32;

/// Looks without sleeping: a pause between looks would be measured too.
void wait(const std::function<bool()>& done, const comm::Deadline& deadline, int other) {
  const auto end = Clock::now() + deadline.limit;
  while (!done()) {
    if (Clock::now() > end) throw comm::SilentRank({other}, deadline.operation + ": no answer within the deadline");
    std::this_thread::yield();
  }
}

void wait(const std::unique_ptr<comm::Pending>& pending, const comm::Deadline& deadline, int other) {
  wait([&] { return pending->test(); }, deadline, other);
}

/// The least time of one way, as the first of the two sees it.
double one_way_seconds(comm::Communicator& communicator, const comm::Deadline& deadline, RankPair pair, size_t bytes) {
  std::vector<std::byte> buffer(bytes);
  double least = 1e300;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto began = Clock::now();
    if (communicator.rank() == pair.first) {
      wait(communicator.send(buffer, pair.second, kPingTag), deadline, pair.second);
      wait(communicator.receive(buffer, pair.second, kPongTag), deadline, pair.second);
    } else {
      wait(communicator.receive(buffer, pair.first, kPingTag), deadline, pair.first);
      wait(communicator.send(buffer, pair.first, kPongTag), deadline, pair.first);
    }
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count() / 2);
  }
  return least;
}

partition::Link measure_link(comm::Communicator& communicator, const comm::Deadline& deadline, RankPair pair) {
  const double small = one_way_seconds(communicator, deadline, pair, kSmallBytes);
  const double large = one_way_seconds(communicator, deadline, pair, kLargeBytes);
  const double per_byte = std::max(large - small, 1e-12) / static_cast<double>(kLargeBytes - kSmallBytes);
  return {std::max(small - per_byte * static_cast<double>(kSmallBytes), 0.0), per_byte};
}

comm::Team everyone(int rank_count) {
  const auto grains = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rank_count)));
  comm::Team team{grains, {}};
  int64_t begin = 0;
  for (const int64_t length : partition::subtree_runs(grains, rank_count)) {
    team.runs.push_back({static_cast<int>(team.runs.size()), begin, begin + length});
    begin += length;
  }
  return team;
}

double sum_seconds(comm::Communicator& communicator, const comm::Deadline& deadline, const comm::Team& team,
                   int64_t count) {
  const comm::GrainRun& run = team.runs[static_cast<size_t>(communicator.rank())];
  const size_t part_count = comm::subtrees_of(run.begin, run.end).size();
  std::vector<std::vector<float>> vectors(part_count, std::vector<float>(static_cast<size_t>(count), 1.0f));
  double least = 1e300;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    comm::barrier(communicator, deadline);
    const auto began = Clock::now();
    std::vector<comm::TreeSum<float>::Part> parts;
    parts.reserve(vectors.size());
    for (const std::vector<float>& vector : vectors) parts.push_back({vector, {}});
    comm::TreeSum<float> sum(communicator, team, kSumTag, std::move(parts), {}, vectors.front());
    wait([&] { return sum.progress(); }, deadline, communicator.rank() == 0 ? 1 : 0);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count());
  }
  return least;
}

}  // namespace

std::vector<RankPair> pairs_to_measure(int rank_count) {
  std::vector<RankPair> pairs;
  for (int distance = 1; distance < rank_count; rank_count <= kMostRanksForAllPairs ? ++distance : distance *= 2) {
    for (int first = 0; first + distance < rank_count; ++first) pairs.push_back({first, first + distance});
  }
  return pairs;
}

std::vector<LinkSpeed> measure_links(comm::Communicator& communicator, const comm::Deadline& deadline) {
  nlohmann::json own = nlohmann::json::array();
  for (const RankPair pair : pairs_to_measure(communicator.size())) {
    comm::barrier(communicator, deadline);
    if (communicator.rank() != pair.first && communicator.rank() != pair.second) continue;
    const partition::Link link = measure_link(communicator, deadline, pair);
    if (communicator.rank() == pair.first) own.push_back(json_of(LinkSpeed{pair.first, pair.second, link}));
  }
  std::vector<LinkSpeed> links;
  for (const std::string& text : comm::gather(communicator, own.dump(), deadline)) {
    for (const auto& link : nlohmann::json::parse(text)) links.push_back(link_speed_from(link));
  }
  return links;
}

std::vector<SumTime> measure_sums(comm::Communicator& communicator, const comm::Deadline& deadline,
                                  const partition::Link& link) {
  std::vector<SumTime> sums;
  if (communicator.size() == 1) return sums;
  const comm::Team team = everyone(communicator.size());
  for (const int64_t count : {int64_t{1} << 10, int64_t{1} << 16, int64_t{1} << 20}) {
    const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
    sums.push_back(
        {bytes, sum_seconds(communicator, deadline, team, count), partition::exchange_seconds(link, team, bytes)});
  }
  return sums;
}

}  // namespace tutti::launch
