#include "comm/team.h"

#include <algorithm>
#include <bit>

namespace tutti::comm {

int Team::position_of(int rank) const {
  const auto run = std::find_if(runs.begin(), runs.end(), [&](const GrainRun& r) { return r.rank == rank; });
  return run == runs.end() ? -1 : static_cast<int>(run - runs.begin());
}

std::vector<Subtree> subtrees_of(int64_t begin, int64_t end) {
  std::vector<Subtree> subtrees;
  while (begin < end) {
    const int aligned = begin == 0 ? 62 : std::countr_zero(static_cast<uint64_t>(begin));
    const int fitting = static_cast<int>(std::bit_width(static_cast<uint64_t>(end - begin))) - 1;
    const int level = std::min(aligned, fitting);
    subtrees.push_back({level, begin >> level});
    begin += int64_t{1} << level;
  }
  return subtrees;
}

}  // namespace tutti::comm
