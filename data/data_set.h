// A data set: the rows of several HDF5 shards as one table, readable by any thread without a lock.
#ifndef TUTTI_DATA_DATA_SET_H
#define TUTTI_DATA_DATA_SET_H

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/data_error.h"
#include "data/field.h"
#include "data/philox.h"

namespace tutti::data {

/// How the rows of an input are changed while they are gathered. All of it is keyed by (seed, epoch, row).
struct Augmentation {
  bool flip = false;  ///< mirror the last dimension with probability 1/2
  int64_t crop = 0;   ///< pad the last two dimensions by this many zeros (as stored) on each side, cut out at a
                      ///< random place
  double noise = 0;   ///< standard deviation of Gaussian noise, added after normalisation
  bool any() const { return flip || crop > 0 || noise > 0; }
};

/// The key under which one gather draws its augmentation.
struct AugmentationKey {
  RandomKey key;
  uint32_t epoch = 0;
};

/// How to read a data set.
struct ReadOptions {
  enum class Access { kAuto, kMap, kPread, kStream };
  Access access = Access::kAuto;     ///< auto: mapped where contiguous and on a local file system
  bool verify_checksums = true;      ///< per block of 4,096 rows, at first touch
  int64_t window_bytes = 256 << 20;  ///< memory that streaming may hold
};

/// The memory that streaming takes of this process; all 0 where nothing is streamed.
struct StreamUse {
  int64_t window_bytes = 0;  ///< ReadOptions::window_bytes
  int64_t all_bytes = 0;     ///< of all streamed blocks together
  int64_t block_bytes = 0;   ///< of the largest one
  int64_t held_bytes = 0;    ///< now
  int64_t peak_bytes = 0;    ///< at most so far

  /// The most that it can come to while `thread_count` threads gather at once: all blocks, or the window, one on its
  /// way into it, and for each thread one that has left it.
  int64_t most_bytes(int64_t thread_count) const;
};

/// Rows of shards, in the bytewise order of the shards' paths. Immutable; gather functions may be called by any number
/// of threads at once. Opening checks that every shard has the same fields and the sizes it announces.
class DataSet {
 public:
  /// Opens the shards named by `paths_or_globs`. Throws DataError naming what is missing or differs.
  static std::shared_ptr<const DataSet> open(const std::vector<std::string>& paths_or_globs,
                                             const ReadOptions& options = {});
  virtual ~DataSet() = default;

  virtual int64_t row_count() const = 0;
  virtual const std::vector<Field>& inputs() const = 0;
  virtual const std::vector<Field>& targets() const = 0;

  /// A hash over fields, row counts and block checksums of all shards (not over their paths): two ranks, or a run and
  /// its resumption, read the same data exactly when these are equal.
  virtual uint64_t fingerprint() const = 0;

  /// Gathers rows of a field as floats, normalised and augmented, into `out` ([rows.size(), row_elements] row-major).
  /// The field is found by its name; its mean and deviation are those of the argument, so a copy without them gives the
  /// values as stored, and a training set's field normalises the test set.
  virtual void gather(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation,
                      AugmentationKey key, std::span<float> out) const = 0;
  virtual void gather(const Field& field, std::span<const int64_t> rows, const Augmentation& augmentation,
                      AugmentationKey key, std::span<double> out) const = 0;

  /// Gathers rows of an integer field. Every value must lie in [low, high) or equal `ignored`; else DataError names
  /// file, row and value.
  virtual void gather_integers(const Field& field, std::span<const int64_t> rows, int64_t low, int64_t high,
                               int64_t ignored, std::span<int64_t> out) const = 0;

  /// Tells that rows [begin, end) are wanted soon. Returns at once; a streamed field reads their blocks ahead.
  virtual void prefetch(const Field& /*field*/, int64_t /*begin*/, int64_t /*end*/) const {}

  virtual StreamUse stream_use() const { return {}; }

  /// Bytes of the streamed blocks, of all fields, that hold rows [begin, end).
  virtual int64_t streamed_bytes(int64_t /*begin*/, int64_t /*end*/) const { return 0; }

  /// Bytes read from shards so far, by this process: rows gathered, and blocks read to verify or stream them.
  virtual int64_t read_bytes() const = 0;

  /// The shards, in the order of their rows; none where the rows are in no file.
  virtual std::vector<std::filesystem::path> files() const { return {}; }

  /// The file and the row within it that hold a global row, for messages: "digits/train-0.h5, row 17".
  virtual std::string place_of(int64_t row) const = 0;
};

}  // namespace tutti::data

#endif
