// Reads the end record, its 64-bit form, and the directory's entries.
#include "src/graph/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "src/graph/graph.h"

namespace tutti::graph {
namespace {

constexpr int64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kEntryBytes = 46;
constexpr int64_t kMaxCommentBytes = 0xFFFF;
constexpr uint32_t kInExtra32 = 0xFFFFFFFF;

/// Little-endian fields of a record.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}
  uint16_t u16(size_t offset) const { return field<uint16_t>(offset); }
  uint32_t u32(size_t offset) const { return field<uint32_t>(offset); }
  uint64_t u64(size_t offset) const { return field<uint64_t>(offset); }
  bool begins_with(std::string_view signature) const { return bytes_.starts_with(signature); }

 private:
  template <typename T>
  T field(size_t offset) const {
    T value = 0;
    if (offset + sizeof(T) > bytes_.size()) throw GraphError("the zip directory ends too early");
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string_view bytes_;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const std::filesystem::path& file) : stream_(file, std::ios::binary) {
    if (!stream_) throw GraphError("the file cannot be opened");
    stream_.seekg(0, std::ios::end);
    file_bytes_ = static_cast<int64_t>(stream_.tellg());
  }

  std::vector<ZipMember> members() {
    find_directory();
    const std::string directory = read(static_cast<uint64_t>(directory_offset_), directory_bytes_);
    std::vector<ZipMember> list;
    std::string_view rest = directory;
    uint64_t total_bytes = 0;
    for (uint64_t i = 0; i < entry_count_; ++i) {
      list.push_back(take_entry(rest));
      total_bytes += static_cast<uint64_t>(list.back().size_bytes);
      if (total_bytes > static_cast<uint64_t>(file_bytes_)) {
        throw GraphError(fmt::format("its members are larger together ({} bytes and more) than the file ({} bytes)",
                                     total_bytes, file_bytes_));
      }
    }
    return list;
  }

 private:
  std::string read(uint64_t offset, uint64_t bytes) {
    const auto limit = static_cast<uint64_t>(file_bytes_);
    if (offset > limit || bytes > limit - offset) {
      throw GraphError(fmt::format("expected {} bytes at {}, the file has {} bytes", bytes, offset, limit));
    }
    std::string text(bytes, '\0');
    stream_.seekg(static_cast<std::streamoff>(offset));
    if (!stream_.read(text.data(), static_cast<std::streamsize>(bytes))) throw GraphError("the file cannot be read");
    return text;
  }

  void find_directory() {
    const int64_t tail_bytes = std::min(file_bytes_, kEndBytes + kMaxCommentBytes);
    const int64_t tail_offset = file_bytes_ - tail_bytes;
    const std::string tail = read(static_cast<uint64_t>(tail_offset), static_cast<uint64_t>(tail_bytes));
    const size_t found = tail.rfind(std::string_view("PK\5\6", 4));
    if (found == std::string::npos || std::ssize(tail) - static_cast<int64_t>(found) < kEndBytes) {
      throw GraphError("it has no zip directory at its end; it is cut short or no archive");
    }
    const Record end(std::string_view(tail).substr(found));
    entry_count_ = end.u16(10);
    directory_bytes_ = end.u32(12);
    directory_offset_ = end.u32(16);
    find_directory64(tail_offset + static_cast<int64_t>(found) - kLocator64Bytes);
    if (directory_bytes_ / kEntryBytes < entry_count_) {
      throw GraphError(fmt::format("its zip directory has {} bytes for {} members", directory_bytes_, entry_count_));
    }
  }

  /// The 64-bit form of the end record, where there is one.
  void find_directory64(int64_t locator_offset) {
    if (locator_offset < 0) return;
    const std::string locator = read(static_cast<uint64_t>(locator_offset), kLocator64Bytes);
    if (!Record(locator).begins_with(std::string_view("PK\6\7", 4))) return;
    const std::string text = read(Record(locator).u64(8), kEnd64Bytes);
    const Record end(text);
    if (!end.begins_with(std::string_view("PK\6\6", 4))) throw GraphError("its zip directory is damaged");
    entry_count_ = end.u64(32);
    directory_bytes_ = end.u64(40);
    directory_offset_ = end.u64(48);
  }

  ZipMember take_entry(std::string_view& rest) const {
    const Record entry(rest);
    if (!entry.begins_with(std::string_view("PK\1\2", 4))) throw GraphError("its zip directory is damaged");
    const size_t name_bytes = entry.u16(28), extra_bytes = entry.u16(30), comment_bytes = entry.u16(32);
    const size_t entry_bytes = kEntryBytes + name_bytes + extra_bytes + comment_bytes;
    if (entry_bytes > rest.size()) throw GraphError("its zip directory ends too early");
    ZipMember member{std::string(rest.substr(kEntryBytes, name_bytes)), 0};
    check_name(member.name);
    const std::string_view extra = rest.substr(kEntryBytes + name_bytes, extra_bytes);
    const uint64_t size = size_field(entry, extra, 24, 0);
    const size_t before = entry.u32(24) == kInExtra32 ? 8 : 0;
    const uint64_t stored_size = size_field(entry, extra, 20, before);
    const uint16_t method = entry.u16(10), flags = entry.u16(8);
    if (method != 0 || (flags & 1) != 0 || size != stored_size) {
      throw GraphError(
          fmt::format("member '{}' is compressed or encrypted ({} bytes as {}), which no archive of "
                      "torch.export.save has",
                      member.name, size, stored_size));
    }
    if (size > static_cast<uint64_t>(file_bytes_)) {
      throw GraphError(
          fmt::format("member '{}' claims {} bytes, the whole file has {}", member.name, size, file_bytes_));
    }
    member.size_bytes = static_cast<int64_t>(size);
    rest.remove_prefix(entry_bytes);
    return member;
  }

  /// A size that stands in the entry, or, where it is marked so, in the 64-bit extra field after `before` bytes.
  static uint64_t size_field(const Record& entry, std::string_view extra, size_t offset, size_t before) {
    const uint32_t size = entry.u32(offset);
    if (size != kInExtra32) return size;
    constexpr uint16_t kZip64 = 1;
    while (extra.size() >= 4) {
      const Record field(extra);
      if (field.u16(0) == kZip64) return Record(extra.substr(4, field.u16(2))).u64(before);
      extra.remove_prefix(std::min<size_t>(extra.size(), 4 + size_t{field.u16(2)}));
    }
    throw GraphError("its zip directory has a member without a size");
  }

  static void check_name(const std::string& name) {
    const std::filesystem::path path(name);
    const bool leads_out = std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
    if (path.is_absolute() || leads_out || name.find_first_of("\\:") != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw GraphError(
          fmt::format("member '{}' has a name which is absolute or leads out of the archive", name.substr(0, 200)));
    }
  }

  std::ifstream stream_;
  int64_t file_bytes_ = 0;
  uint64_t entry_count_ = 0, directory_bytes_ = 0, directory_offset_ = 0;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(const std::filesystem::path& file) {
  try {
    return DirectoryReader(file).members();
  } catch (const GraphError& error) {
    throw GraphError(
        fmt::format("{}: {}. Write the archive anew with torch.export.save.", file.string(), error.what()));
  }
}

}  // namespace tutti::graph
