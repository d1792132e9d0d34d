#include "comm/fast_sum.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace tutti::comm {
namespace {

/// The same members, each with one complete subtree of the smallest tree that has room for all: those on the left get
/// one leaf, those on the right two.
Team one_subtree_each(const Team& team) {
  const auto member_count = static_cast<int64_t>(team.runs.size());
  Team equal{static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(member_count))), {}};
  const int64_t single_count = 2 * member_count - equal.grain_count;
  int64_t begin = 0;
  for (const GrainRun& run : team.runs) {
    const int64_t end = begin + (begin < single_count ? 1 : 2);
    equal.runs.push_back({run.rank, begin, end});
    begin = end;
  }
  return equal;
}

template <typename Value>
void add_to(std::span<Value> sum, std::span<const Value> values) {
  if (values.size() != sum.size()) {
    throw std::invalid_argument(
        fmt::format("Fast sum: expected parts of {} values, found {}", sum.size(), values.size()));
  }
  Value* const out = sum.data();
  const Value* const in = values.data();
  for (size_t i = 0; i < sum.size(); ++i) out[i] += in[i];
}

/// Adds the parts' elements into `sum`. Returns it as the exchange's part, together with `scalars`.
template <typename Element, typename Part>
std::vector<Part> one_part(const std::vector<Part>& parts, std::span<Element> sum, std::vector<double>& scalars) {
  if (parts.empty() || parts[0].elements.size() != sum.size()) {
    throw std::invalid_argument("Fast sum: expected at least one part, as long as the sum");
  }
  if (parts[0].elements.data() != sum.data()) std::ranges::copy(parts[0].elements, sum.begin());
  scalars.assign(parts[0].scalars.begin(), parts[0].scalars.end());
  for (size_t i = 1; i < parts.size(); ++i) {
    add_to<Element>(sum, parts[i].elements);
    add_to<double>(scalars, parts[i].scalars);
  }
  return {{sum, scalars}};
}

}  // namespace

template <typename Element>
FastSum<Element>::FastSum(Communicator& communicator, const Team& team, int tag, const std::vector<Part>& parts,
                          Word word, std::span<Element> sum)
    : exchange_(communicator, one_subtree_each(team), tag, one_part(parts, sum, own_scalars_), std::move(word), sum) {}

template <typename Element>
int64_t FastSum<Element>::buffer_bytes(const Team& team, int position, int64_t element_count, int64_t scalar_count) {
  return TreeSum<Element>::buffer_bytes(one_subtree_each(team), position, element_count, scalar_count) +
         scalar_count * static_cast<int64_t>(sizeof(double));
}

template class FastSum<float>;
template class FastSum<double>;

}  // namespace tutti::comm
