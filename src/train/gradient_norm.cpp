// The norm of a gradient in an order of additions that depends on nothing but its length.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "src/train/optimizer_kernels.h"

namespace tutti::train {
namespace {

constexpr size_t kChunk = 4096;
constexpr size_t kAccumulators = 16;

/// The sum of squares of at most kChunk elements: element i is added to accumulator i mod 16, at every level; then the
/// accumulators are added pairwise.
template <typename Element>
struct ChunkSum {
  [[gnu::always_inline]] void operator()() {
    double accumulator[kAccumulators] = {};
    const Element* data = chunk.data();
    const size_t whole = chunk.size() / kAccumulators * kAccumulators;
    for (size_t i = 0; i < whole; i += kAccumulators) {
      for (size_t j = 0; j < kAccumulators; ++j) {
        const auto x = static_cast<double>(data[i + j]);
        accumulator[j] += x * x;
      }
    }
    for (size_t j = 0; j < chunk.size() - whole; ++j) {
      const auto x = static_cast<double>(data[whole + j]);
      accumulator[j] += x * x;
    }
    for (size_t width = kAccumulators / 2; width > 0; width /= 2) {
      for (size_t j = 0; j < width; ++j) accumulator[j] += accumulator[j + width];
    }
    sum = accumulator[0];
  }

  std::span<const Element> chunk;
  double sum = 0;
};

/// Adds numbers in the order of the binary tree over their positions.
class TreeAccumulator {
 public:
  void add(double value) {
    for (uint64_t n = count_++; n % 2 == 1; n /= 2) {
      value += pending_.back();
      pending_.pop_back();
    }
    pending_.push_back(value);
  }

  /// Joins the complete subtrees that are left, the smallest first.
  double total() const {
    double sum = 0;
    for (auto subtree = pending_.rbegin(); subtree != pending_.rend(); ++subtree) sum += *subtree;
    return sum;
  }

 private:
  uint64_t count_ = 0;
  std::vector<double> pending_;
};

}  // namespace

template <typename Element>
double squared_norm_at(SimdLevel level, std::span<const Element> gradient) {
  TreeAccumulator tree;
  for (size_t begin = 0; begin < gradient.size(); begin += kChunk) {
    ChunkSum<Element> chunk{gradient.subspan(begin, std::min(kChunk, gradient.size() - begin))};
    run_at(level, chunk);
    tree.add(chunk.sum);
  }
  return tree.total();
}

template <typename Element>
double squared_norm(std::span<const Element> gradient) {
  return squared_norm_at(best_simd_level(), gradient);
}

double clip_scale(double norm, double max_norm) {
  const double coefficient = max_norm / (norm + 1e-6);
  return coefficient < 1 ? coefficient : 1;
}

template double squared_norm_at(SimdLevel, std::span<const float>);
template double squared_norm_at(SimdLevel, std::span<const double>);
template double squared_norm(std::span<const float>);
template double squared_norm(std::span<const double>);

}  // namespace tutti::train
