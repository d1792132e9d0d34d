// The declarations of all keys of the job file: what the reader reads through, what its checks compare with, and what
// docs/job-file.md is made from.
#ifndef TUTTI_LAUNCH_KEY_DECLARATIONS_H
#define TUTTI_LAUNCH_KEY_DECLARATIONS_H

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

/// The numbers a key takes.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   ///< low itself is not allowed
  bool high_open = false;  ///< high itself is not allowed

  bool contains(double value) const;
  /// " of at least 1", " greater than 0", " from 0 to 1"; empty without bounds.
  std::string text() const;
};

/// The values a key takes.
struct ValueType {
  enum class Kind { kInteger, kNumber, kBoolean, kText, kBytes, kChoice, kIntegers, kNumbers, kTexts, kNested };
  Kind kind = Kind::kNested;
  Bounds bounds = {};                     ///< of a number, or of each in a list
  std::vector<std::string> choices = {};  ///< of kChoice
  std::string nested = {};                ///< of kNested: what stands there
  bool or_auto = false;                   ///< `auto` is a value too, read as 0

  /// As in the documentation and in "expected ...".
  std::string text() const;
};

/// Defaults that are not values.
inline constexpr std::string_view kRequired = "required";
inline constexpr std::string_view kNone = "none";

struct Key {
  std::string name;
  ValueType type;
  std::string default_value;  ///< as written in a job file, or kRequired, or kNone
  std::string meaning;
  bool bit_relevant = true;  ///< changes a model's numbers: hashed, and must be equal on resume
};

/// The keys of one mapping of the job file.
struct Block {
  std::string name;
  std::string meaning;
  std::vector<Key> keys;

  const Key* find(std::string_view key) const;
  std::vector<std::string> key_names() const;
};

const Block& file_block();
const Block& run_block();
const Block& data_block();
const Block& augment_block();
const Block& model_block();
const Block& clip_block();
const Block& parameter_block();
const Block& early_stopping_block();
const Block& checkpoint_block();
const Block& sample_block();

/// Named choices with keys of their own, in the order of the documentation.
const std::vector<Block>& loss_blocks();
const std::vector<Block>& optimizer_blocks();
const std::vector<Block>& schedule_blocks();

}  // namespace tutti::launch

#endif
