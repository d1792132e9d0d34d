// One allocation that holds the same kind of data (parameters, gradients, one moment) of every model of a rank.
#ifndef TUTTI_SRC_TRAIN_FUSED_BUFFER_H
#define TUTTI_SRC_TRAIN_FUSED_BUFFER_H

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::train {

/// Every segment begins at a multiple of this.
inline constexpr int64_t kSegmentAlignment = 64;

/// `bytes` rounded up to the segment alignment.
inline int64_t aligned_bytes(int64_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

/// What one range of `bytes` takes of a fused buffer: itself, aligned, and a gap that keeps it apart from the next.
inline int64_t range_bytes(int64_t bytes) { return aligned_bytes(bytes) + kSegmentAlignment; }

/// Zeroed memory of a fixed size, page aligned, taken from the system in one piece. Ranges are handed out once, one
/// behind the other; under the address sanitizer whatever was not handed out is poisoned.
class FusedBuffer {
 public:
  /// `purpose` ("parameters") is for messages. Throws std::runtime_error, with the bytes, when there is no memory.
  FusedBuffer(std::string purpose, int64_t size_bytes);
  ~FusedBuffer();
  FusedBuffer(FusedBuffer&& other) noexcept;
  FusedBuffer& operator=(FusedBuffer&&) = delete;

  /// The next range: a tensor of this shape, 64-byte aligned, with a storage (and so a version counter) of its own.
  /// Requires that the buffer has room for range_bytes() of it.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType type);

  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::string purpose_;
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  int64_t taken_bytes_ = 0;
};

}  // namespace tutti::train

#endif
