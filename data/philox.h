// Philox4x32-10: random numbers as a pure function of (key, counter).
#ifndef TUTTI_DATA_PHILOX_H
#define TUTTI_DATA_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace tutti::data {

/// Four words of counter or of random bits.
using PhiloxWords = std::array<uint32_t, 4>;

/// A 64-bit Philox key. Every use of randomness has a purpose of its own ("dropout", "init", "order", ...), so that no
/// two uses share a stream.
struct RandomKey {
  uint64_t value = 0;

  /// seed XOR fnv_hash(purpose).
  static RandomKey of(uint64_t seed, std::string_view purpose);
};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011).
inline PhiloxWords philox(RandomKey key, PhiloxWords counter) {
  uint32_t key0 = static_cast<uint32_t>(key.value);
  uint32_t key1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// A uniform float in [0, 1) from the upper 24 bits of a word.
inline float uniform_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// A uniform double in [0, 1) from 53 bits of two words.
inline double uniform_double(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

/// A keyed permutation of [0, size): a Feistel network over the next power of four, walked until it falls inside.
/// No table is stored. Bijective for every size >= 1 and every key.
class Permutation {
 public:
  /// `salt` tells permutations of one key apart (an epoch, a window).
  Permutation(int64_t size, RandomKey key, uint64_t salt);

  /// Requires 0 <= index < size.
  int64_t operator()(int64_t index) const;

  /// The index that is taken to `value`. Requires 0 <= value < size.
  int64_t inverse(int64_t value) const;

 private:
  static constexpr int kRounds = 4;
  uint64_t forward(uint64_t value) const;
  uint64_t backward(uint64_t value) const;

  int64_t size_;
  int half_bits_;
  std::array<uint32_t, kRounds> round_keys_;
};

}  // namespace tutti::data

#endif
