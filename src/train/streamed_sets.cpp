// Sums over streamed data sets.
#include "src/train/streamed_sets.h"

namespace tutti::train {

void StreamedSets::add(const ModelData& data) {
  for (const auto& set : {data.train, data.validation, data.test}) {
    if (set && set->stream_use().all_bytes > 0) sets_.insert(set);
  }
}

int64_t StreamedSets::most_bytes(int64_t lane_count) const {
  int64_t bytes = 0;
  for (const auto& set : sets_) bytes += set->stream_use().most_bytes(lane_count);
  return bytes;
}

int64_t StreamedSets::held_bytes() const {
  int64_t bytes = 0;
  for (const auto& set : sets_) bytes += set->stream_use().held_bytes;
  return bytes;
}

int64_t StreamedSets::peak_bytes() const {
  int64_t bytes = 0;
  for (const auto& set : sets_) bytes += set->stream_use().peak_bytes;
  return bytes;
}

}  // namespace tutti::train
