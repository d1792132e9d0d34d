#include "comm/tree_add.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <vector>

namespace tutti::comm {
namespace {

/// Elements that are added at a time, so that all intermediate sums stay in the cache.
constexpr int64_t kBlockElements = 2048;

int level_of(int64_t grain_count) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(grain_count))) - 1; }

int64_t scratch_elements(int64_t grain_count, int64_t element_count) {
  return std::min(kBlockElements, element_count) * 2 * level_of(grain_count);
}

/// The sum over one block of elements.
template <typename Element>
class BlockSum {
 public:
  BlockSum(std::span<const Leaf<Element>> leaves, int64_t offset, int64_t count, Element* scratch)
      : leaves_(leaves), offset_(offset), count_(count), scratch_(scratch) {}

  /// Where the sum of `node` lies: at its leaf, or at `out`. Everything below is read before `out` is written, so `out`
  /// may be a leaf's own memory.
  const Element* sum_of(const Subtree& node, Element* out) {
    if (next_ < leaves_.size() && leaves_[next_].subtree == node) return leaves_[next_++].values + offset_;
    if (node.level == 0) throw std::invalid_argument(fmt::format("Tree sum: no part holds grain {}", node.index));
    Element* const left_out = scratch_ + count_ * 2 * (node.level - 1);
    const Element* const left = sum_of({node.level - 1, 2 * node.index}, left_out);
    const Element* const right = sum_of({node.level - 1, 2 * node.index + 1}, left_out + count_);
#pragma GCC ivdep
    for (int64_t i = 0; i < count_; ++i) out[i] = left[i] + right[i];
    return out;
  }

 private:
  std::span<const Leaf<Element>> leaves_;
  int64_t offset_;
  int64_t count_;
  Element* scratch_;  // two blocks per level below the root
  size_t next_ = 0;
};

}  // namespace

template <typename Element>
void add_in_tree_order(int64_t grain_count, std::span<const Leaf<Element>> leaves, std::span<Element> sum) {
  const auto element_count = static_cast<int64_t>(sum.size());
  std::vector<Element> scratch(static_cast<size_t>(scratch_elements(grain_count, element_count)));
  for (int64_t offset = 0; offset < element_count; offset += kBlockElements) {
    const int64_t count = std::min(kBlockElements, element_count - offset);
    Element* const out = sum.data() + offset;
    const Element* const block =
        BlockSum<Element>(leaves, offset, count, scratch.data()).sum_of({level_of(grain_count), 0}, out);
    if (block != out) std::copy_n(block, count, out);
  }
}

template <typename Element>
int64_t tree_add_scratch_bytes(int64_t grain_count, int64_t element_count) {
  return scratch_elements(grain_count, element_count) * static_cast<int64_t>(sizeof(Element));
}

template void add_in_tree_order<float>(int64_t, std::span<const Leaf<float>>, std::span<float>);
template void add_in_tree_order<double>(int64_t, std::span<const Leaf<double>>, std::span<double>);
template int64_t tree_add_scratch_bytes<float>(int64_t, int64_t);
template int64_t tree_add_scratch_bytes<double>(int64_t, int64_t);

}  // namespace tutti::comm
