// The memory that streaming takes for the models of one process.
#ifndef TUTTI_SRC_TRAIN_STREAMED_SETS_H
#define TUTTI_SRC_TRAIN_STREAMED_SETS_H

#include <cstdint>
#include <memory>
#include <set>

#include "src/train/model_spec.h"

namespace tutti::train {

/// Data sets that are streamed, each once however many models read it and in however many parts: all of them share its
/// window of blocks.
class StreamedSets {
 public:
  void add(const ModelData& data);
  void add(const StreamedSets& others) { sets_.insert(others.sets_.begin(), others.sets_.end()); }

  /// The most that they can hold together while `lane_count` lanes gather at once.
  int64_t most_bytes(int64_t lane_count) const;
  /// What they hold now, and the most that each held so far.
  int64_t held_bytes() const;
  int64_t peak_bytes() const;

 private:
  std::set<std::shared_ptr<const data::DataSet>> sets_;
};

}  // namespace tutti::train

#endif
