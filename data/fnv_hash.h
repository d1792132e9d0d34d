// The 64-bit FNV-1a hash: names of contents and keys of random streams, not a defence against forgery.
#ifndef TUTTI_DATA_FNV_HASH_H
#define TUTTI_DATA_FNV_HASH_H

#include <cstdint>
#include <string_view>

namespace tutti::data {

/// The hash of nothing.
inline constexpr uint64_t kFnvBegin = 0xCBF29CE484222325;

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo) of `bytes`, continued from the hash of what came before them. Checkpoints
/// hold its values, of settings and of data sets.
constexpr uint64_t fnv_hash(std::string_view bytes, uint64_t before = kFnvBegin) {
  for (const char byte : bytes) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return before;
}

}  // namespace tutti::data

#endif
