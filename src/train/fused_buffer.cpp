#include "src/train/fused_buffer.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <stdexcept>
#include <utility>

#include "src/program/region_poison.h"

namespace tutti::train {

FusedBuffer::FusedBuffer(std::string purpose, int64_t size_bytes)
    : purpose_(std::move(purpose)), size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  void* memory =
      mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error(fmt::format(
        "fused buffer of {}: the system gave no {} bytes; use more ranks or fewer models", purpose_, size_bytes));
  }
  data_ = static_cast<std::byte*>(memory);
  program::poison(data_, static_cast<size_t>(size_bytes));
}

FusedBuffer::~FusedBuffer() {
  if (data_ == nullptr) return;
  program::unpoison(data_, static_cast<size_t>(size_bytes_));
  munmap(data_, static_cast<size_t>(size_bytes_));
}

FusedBuffer::FusedBuffer(FusedBuffer&& other) noexcept
    : purpose_(std::move(other.purpose_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      taken_bytes_(std::exchange(other.taken_bytes_, 0)) {}

at::Tensor FusedBuffer::take(at::IntArrayRef shape, at::ScalarType type) {
  const int64_t bytes = c10::multiply_integers(shape) * static_cast<int64_t>(c10::elementSize(type));
  TORCH_CHECK(taken_bytes_ + range_bytes(bytes) <= size_bytes_, "fused buffer of ", purpose_, ": expected at most ",
              size_bytes_ - taken_bytes_, " bytes, asked for ", bytes);
  std::byte* begin = data_ + taken_bytes_;
  taken_bytes_ += range_bytes(bytes);
  if (bytes == 0) return at::empty(shape, at::TensorOptions(type));
  program::unpoison(begin, static_cast<size_t>(bytes));
  return at::from_blob(begin, shape, at::TensorOptions(type));
}

}  // namespace tutti::train
