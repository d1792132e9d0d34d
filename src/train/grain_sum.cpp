#include "src/train/grain_sum.h"

#include <bit>

namespace tutti::train {

int GrainSum::buffer_count(int64_t begin, int64_t end, int64_t lane_count) {
  const int64_t run = end - begin;
  if (run <= 1) return 1;
  const auto subtrees = comm::subtrees_of(begin, end);
  int highest = 0;
  for (const comm::Subtree& subtree : subtrees) highest = std::max(highest, subtree.level);
  return static_cast<int>(
      std::min(run, static_cast<int64_t>(subtrees.size()) - 1 + highest + std::min(lane_count, run)));
}

GrainSum::GrainSum(int64_t begin, int64_t end, std::vector<at::Tensor> pool)
    : begin_(begin), end_(end), pool_(std::move(pool)) {
  reset();
}

void GrainSum::reset() {
  const std::lock_guard lock(mutex_);
  pending_.clear();
  free_.clear();
  for (int i = static_cast<int>(pool_.size()); i-- > 0;) free_.push_back(i);
  unfinished_ = end_ - begin_;
}

std::optional<int> GrainSum::acquire() {
  if (pool_.empty()) return 0;
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const int buffer = free_.back();
  free_.pop_back();
  return buffer;
}

bool GrainSum::has_room() const {
  if (pool_.empty()) return true;
  const std::lock_guard lock(mutex_);
  return !free_.empty();
}

std::optional<GrainSum::Part> GrainSum::take_sibling_or_store(Key key, Part& part) {
  const std::lock_guard lock(mutex_);
  const auto [level, index] = key;
  const int64_t parent_begin = (index >> 1) << (level + 1);
  const int64_t parent_end = parent_begin + (int64_t{1} << (level + 1));
  const auto sibling = pending_.find({level, index ^ 1});
  if (parent_begin < begin_ || parent_end > end_ || sibling == pending_.end()) {
    pending_[key] = std::move(part);
    return std::nullopt;
  }
  Part found = std::move(sibling->second);
  pending_.erase(sibling);
  return found;
}

bool GrainSum::finish(int64_t grain, int buffer, std::vector<double> scalars) {
  Part part{buffer, std::move(scalars)};
  Key key{0, grain};
  while (auto sibling = take_sibling_or_store(key, part)) {
    Part& left = key.second % 2 == 0 ? part : *sibling;
    Part& right = key.second % 2 == 0 ? *sibling : part;
    if (!pool_.empty()) pool_[static_cast<size_t>(left.buffer)].add_(pool_[static_cast<size_t>(right.buffer)]);
    for (size_t i = 0; i < left.scalars.size(); ++i) left.scalars[i] += right.scalars[i];
    const int freed = right.buffer;
    Part sum = std::move(left);
    part = std::move(sum);
    key = {key.first + 1, key.second >> 1};
    if (!pool_.empty()) {
      const std::lock_guard lock(mutex_);
      free_.push_back(freed);
    }
  }
  const std::lock_guard lock(mutex_);
  return --unfinished_ == 0;
}

std::vector<GrainSum::Part> GrainSum::parts() const {
  const std::lock_guard lock(mutex_);
  std::vector<Part> parts;
  for (const comm::Subtree& subtree : comm::subtrees_of(begin_, end_)) {
    parts.push_back(pending_.at({subtree.level, subtree.index}));
  }
  return parts;
}

}  // namespace tutti::train
