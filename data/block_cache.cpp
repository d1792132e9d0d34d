// The reader thread and the window of blocks.
#include "data/block_cache.h"

#include <algorithm>
#include <utility>

namespace tutti::data {

BlockCache::BlockCache(int64_t window_bytes, Load load)
    : window_bytes_(window_bytes),
      load_(std::move(load)),
      reader_([this](const std::stop_token& stop) { read_blocks(stop); }) {}

BlockCache::~BlockCache() = default;

bool BlockCache::request(Id id) {
  const auto [position, added] = entries_.try_emplace(id);
  if (added) position->second = std::make_shared<Entry>();
  return added;
}

bool BlockCache::follows_last(Id id) {
  const auto [last, first_time] = last_block_.try_emplace({id.column, id.shard}, id.block);
  return std::exchange(last->second, id.block) + 1 == id.block && !first_time;
}

std::shared_ptr<const BlockCache::Block> BlockCache::get(Id id, int64_t block_count) {
  std::unique_lock lock(mutex_);
  if (request(id)) queue_.push_front(id);
  const std::shared_ptr<Entry> entry = entries_.at(id);
  if (std::exchange(entry->fresh, false) && follows_last(id) && id.block + 1 < block_count) {
    const Id next{id.column, id.shard, id.block + 1};
    if (request(next)) queue_.push_back(next);
  }
  wanted_.notify_one();
  read_.wait(lock, [&] { return entry->block || entry->failure; });
  if (entry->failure) std::rethrow_exception(entry->failure);
  // Unless it has already left the window again, it is now the block used last.
  if (const auto it = entries_.find(id); it != entries_.end() && it->second == entry) {
    used_.splice(used_.end(), used_, entry->used);
  }
  return entry->block;
}

void BlockCache::prefetch(Id id) {
  const std::lock_guard lock(mutex_);
  if (!request(id)) return;
  queue_.push_back(id);
  wanted_.notify_one();
}

void BlockCache::make_room(int64_t bytes) {
  while (!used_.empty() && held_bytes_ + bytes > window_bytes_) {
    const auto oldest = entries_.find(used_.front());
    held_bytes_ -= static_cast<int64_t>(oldest->second->block->size());
    entries_.erase(oldest);
    used_.pop_front();
  }
}

std::shared_ptr<const BlockCache::Block> BlockCache::read_block(Id id) {
  auto block = std::make_unique<const Block>(load_(id));
  const auto bytes = static_cast<int64_t>(block->size());
  const int64_t living_bytes = living_->bytes.fetch_add(bytes) + bytes;
  living_->peak_bytes = std::max(living_->peak_bytes.load(), living_bytes);  // this is the only thread that adds
  return {block.release(), [living = living_, bytes](const Block* gone) {
            delete gone;
            living->bytes -= bytes;
          }};
}

void BlockCache::read_blocks(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wanted_.wait(lock, stop, [&] { return !queue_.empty(); }) && !stop.stop_requested()) {
    const Id id = queue_.front();
    queue_.pop_front();
    const std::shared_ptr<Entry> entry = entries_.at(id);
    lock.unlock();
    std::shared_ptr<const Block> block;
    std::exception_ptr failure;
    try {
      block = read_block(id);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (block) {
      make_room(static_cast<int64_t>(block->size()));
      held_bytes_ += static_cast<int64_t>(block->size());
      entry->used = used_.insert(used_.end(), id);
      entry->block = std::move(block);
    } else {
      entry->failure = failure;
      entries_.erase(id);  // a later call tries again
    }
    read_.notify_all();
  }
}

}  // namespace tutti::data
