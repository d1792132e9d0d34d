// The window of blocks that streaming holds in memory, filled by one reader thread.
#ifndef TUTTI_DATA_BLOCK_CACHE_H
#define TUTTI_DATA_BLOCK_CACHE_H

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::data {

/// Keeps the blocks that were used last, up to `window_bytes` and always at least one. A block that has left the window
/// lives on while a caller holds it.
class BlockCache {
 public:
  using Block = std::vector<std::byte>;
  /// A block of rows of one column of one shard.
  struct Id {
    int64_t column = 0, shard = 0, block = 0;
    auto operator<=>(const Id&) const = default;  // NOLINT(modernize-use-nullptr): takes the 0 of <=> for a pointer
  };
  /// Reads a block; called by the reader thread only. What it throws reaches the callers of get() that wait for it.
  using Load = std::function<Block(Id)>;

  BlockCache(int64_t window_bytes, Load load);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// The block, waiting for it where it must be read. For any thread. A caller that reads the blocks of a column one
  /// after the other finds the next one, if it is below `block_count`, read ahead.
  std::shared_ptr<const Block> get(Id id, int64_t block_count);

  /// Asks for a block without waiting for it; does nothing when it is there or asked for.
  void prefetch(Id id);

  /// Of the blocks that live: in the window, on their way into it, or held by callers only. Now, and at most so far.
  int64_t held_bytes() const { return living_->bytes.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return living_->peak_bytes.load(std::memory_order_relaxed); }

 private:
  // Outlives the cache where callers still hold blocks.
  struct Living {
    std::atomic<int64_t> bytes{0}, peak_bytes{0};
  };
  // A block that is asked for, then read or failed.
  struct Entry {
    std::shared_ptr<const Block> block;
    std::exception_ptr failure;
    std::list<Id>::iterator used;  // its place in used_, once read
    bool fresh = true;             // no get() has asked for it yet
  };
  bool request(Id id);
  bool follows_last(Id id);
  void read_blocks(const std::stop_token& stop);
  void make_room(int64_t bytes);
  std::shared_ptr<const Block> read_block(Id id);

  int64_t window_bytes_;
  Load load_;
  std::mutex mutex_;
  std::condition_variable_any wanted_, read_;
  std::deque<Id> queue_;
  std::map<Id, std::shared_ptr<Entry>> entries_;
  std::map<std::pair<int64_t, int64_t>, int64_t> last_block_;  // that get() found fresh, by column and shard
  std::list<Id> used_;                                         // the least recently used first
  int64_t held_bytes_ = 0;                                     // in the window
  std::shared_ptr<Living> living_ = std::make_shared<Living>();
  std::jthread reader_;  // last: it uses all of the above
};

}  // namespace tutti::data

#endif
