// The owner's side of a lane region.
#include "src/program/lane_region.h"

#include <utility>

#include "src/program/region_arena.h"

namespace tutti::program {

LaneRegion::LaneRegion(int64_t capacity_bytes) : arena_(new Arena(capacity_bytes)) {}

LaneRegion::~LaneRegion() {
  if (arena_ != nullptr) arena_->abandon();
}

LaneRegion::LaneRegion(LaneRegion&& other) noexcept : arena_(std::exchange(other.arena_, nullptr)) {}

LaneRegion& LaneRegion::operator=(LaneRegion&& other) noexcept {
  std::swap(arena_, other.arena_);
  return *this;
}

int64_t LaneRegion::capacity_bytes() const { return arena_->capacity_bytes(); }
int64_t LaneRegion::extent_bytes() const { return arena_->extent_bytes(); }

LaneRegion::Use::Use(LaneRegion& region) : arena_(region.arena_), outer_(Arena::current()) {
  arena_->begin_use();
  Arena::current() = arena_;
}

LaneRegion::Use::~Use() {
  Arena::current() = outer_;
  arena_->end_use();
}

}  // namespace tutti::program
