// Mapped files and files read by pread.
#include "data/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <system_error>

#include "data/data_error.h"
#include "data/fault_guard.h"
#include "data/file_kind.h"

namespace tutti::data {
namespace {

// Magic numbers of statfs(2) and of the file systems' own sources.
constexpr uint32_t kNetworkFileSystems[] = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFE534D42,  // SMB2
    0xFF534D42,  // CIFS
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0xAAD7AAEA,  // PanFS
    0x5346414F,  // AFS
    0x65735546,  // FUSE
};

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (value_ < 0) throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

class MappedFile : public ByteSource {
 public:
  MappedFile(const std::filesystem::path& path, int64_t file_bytes)
      : name_(path.string()), size_(static_cast<size_t>(file_bytes)) {
    install_fault_guard();
    const Descriptor file(path);
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.value(), 0);
    if (address == MAP_FAILED) {
      throw DataError(fmt::format("{}: {} bytes cannot be mapped: {}", name_, size_, std::strerror(errno)));
    }
    begin_ = static_cast<const std::byte*>(address);
  }
  ~MappedFile() override { ::munmap(const_cast<std::byte*>(begin_), size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  void read(int64_t offset_bytes, std::span<std::byte> out) const override {
    if (!guarded_copy({begin_ + offset_bytes, out.size()}, out)) {
      throw DataError(
          fmt::format("{}: {} bytes at byte {} can no longer be read: the file was cut after it was opened, "
                      "or its disk failed",
                      name_, out.size(), offset_bytes));
    }
  }

 private:
  std::string name_;
  size_t size_;
  const std::byte* begin_ = nullptr;
};

class PreadFile : public ByteSource {
 public:
  explicit PreadFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {}

  void read(int64_t offset_bytes, std::span<std::byte> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(file_.value(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset_bytes) + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        throw DataError(fmt::format("{}: expected {} bytes at byte {}, found {}: {}", name_, out.size(), offset_bytes,
                                    done, got < 0 ? std::strerror(errno) : "the file was cut after it was opened"));
      }
      done += static_cast<size_t>(got);
    }
  }

 private:
  std::string name_;
  Descriptor file_;
};

}  // namespace

void require_regular_file(const std::filesystem::path& path) {
  if (const std::string other = other_than_regular_file(path); !other.empty()) {
    throw DataError(fmt::format("{}: expected a regular file, found {}; give a file", path.string(), other));
  }
}

int64_t regular_file_bytes(const std::filesystem::path& path) {
  require_regular_file(path);
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), error.message()));
  return static_cast<int64_t>(bytes);
}

std::unique_ptr<ByteSource> map_file(const std::filesystem::path& path, int64_t file_bytes) {
  return std::make_unique<MappedFile>(path, file_bytes);
}

std::unique_ptr<ByteSource> pread_file(const std::filesystem::path& path) { return std::make_unique<PreadFile>(path); }

bool on_network_file_system(const std::filesystem::path& path) {
  struct statfs info = {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return std::find(std::begin(kNetworkFileSystems), std::end(kNetworkFileSystems),
                   static_cast<uint32_t>(info.f_type)) != std::end(kNetworkFileSystems);
}

}  // namespace tutti::data
