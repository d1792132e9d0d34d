// Reads the end record, its 64-bit form, the directory's entries and the header before each member.
#include "data/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

#include "data/byte_source.h"

namespace tutti::data {
namespace {

constexpr std::string_view kEntry = "PK\1\2", kLocal = "PK\3\4", kEnd = "PK\5\6", kEnd64 = "PK\6\6",
                           kLocator64 = "PK\6\7";
constexpr uint64_t kEntryBytes = 46, kLocalBytes = 30, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kMaxCommentBytes = 0xFFFF, kMaxNameBytes = 511;
constexpr uint64_t kMaxEntryBytes = kEntryBytes + 3 * 0xFFFF;  // with name, extra fields and comment
constexpr uint64_t kMaxDirectoryBytes = uint64_t{1} << 28;
constexpr uint64_t kMaxDeflateRatio = 1032;                  // a match of 258 bytes takes two bits at least
constexpr uint64_t kIn64 = 0xFFFFFFFF, kCountIn64 = 0xFFFF;  // the value stands in a 64-bit record
constexpr uint64_t kEncrypted = 1 << 0 | 1 << 6 | 1 << 13;   // plain, strong, and with masked headers
constexpr uint64_t kSizesFollow = 1 << 3, kPatch = 1 << 5;   // flags of a member
constexpr const char* kFewerMembers = "its ZIP directory is damaged or has fewer members than it claims";
constexpr const char* kSeveralParts = "it is one of several parts; join them first";

/// What is wrong with the archive, without its name.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Little-endian numbers.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}
  bool begins_with(std::string_view signature) const { return bytes_.starts_with(signature); }
  uint64_t u16(size_t offset) const { return number(offset, 2); }
  uint64_t u32(size_t offset) const { return number(offset, 4); }
  uint64_t u64(size_t offset) const { return number(offset, 8); }

 private:
  uint64_t number(size_t offset, size_t width) const {
    if (offset + width > bytes_.size()) throw Fault("a record of its ZIP directory is cut");
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[offset + i]);
    return value;
  }
  std::string_view bytes_;
};

/// What an entry of the directory and the header before the member both say.
struct Header {
  std::string_view name;
  uint64_t flags = 0, method = 0, crc = 0, stored_bytes = 0, bytes = 0;
};

/// The fields in common, of which the flags stand at `offset`.
Header header_of(const Record& record, size_t offset, std::string_view name) {
  return {.name = name,
          .flags = record.u16(offset),
          .method = record.u16(offset + 2),
          .crc = record.u32(offset + 8),
          .stored_bytes = record.u32(offset + 12),
          .bytes = record.u32(offset + 16)};
}

/// Replaces the values that are left to the 64-bit extra field, in the order in which it gives them.
void take_extra64(std::string_view extra, std::initializer_list<uint64_t*> values) {
  constexpr uint64_t kExtra64 = 1;
  std::optional<std::string_view> found;
  while (!extra.empty()) {
    const Record field(extra);
    const uint64_t bytes = field.u16(2);
    if (4 + bytes > extra.size() || (field.u16(0) == kExtra64 && found)) {
      throw Fault("the extra fields of a member are damaged");
    }
    if (field.u16(0) == kExtra64) found = extra.substr(4, bytes);
    extra.remove_prefix(4 + bytes);
  }
  const Record wide(found.value_or(""));
  size_t offset = 0;
  for (uint64_t* value : values) {
    if (*value != kIn64) continue;
    *value = wide.u64(offset);
    offset += 8;
  }
}

/// Throws where the header claims what no member can have in a file of that size, or what is not read.
void check(const Header& header, uint64_t file_bytes) {
  if (header.name.empty() || header.name.size() > kMaxNameBytes || header.name.find('\0') != std::string_view::npos) {
    throw Fault(fmt::format("expected names of 1 to {} bytes without a NUL, found one of {} bytes", kMaxNameBytes,
                            header.name.size()));
  }
  const auto fault = [&](const std::string& what) { return Fault(fmt::format("member '{}' {}", header.name, what)); };
  if ((header.flags & kEncrypted) != 0) throw fault("is encrypted; write it without a password");
  if ((header.flags & kPatch) != 0) throw fault("is a patch of another archive");
  if (header.method != 0 && header.method != 8) {
    throw fault(fmt::format("is compressed: expected none (method 0) or deflate (8), found method {}", header.method));
  }
  if (header.stored_bytes > file_bytes) {
    throw fault(fmt::format("claims {} bytes, the whole file has {}", header.stored_bytes, file_bytes));
  }
  if (header.method == 0 ? header.bytes != header.stored_bytes
                         : header.bytes / kMaxDeflateRatio > header.stored_bytes) {
    throw fault(fmt::format("claims {} bytes from {} {} ones, which cannot be", header.bytes, header.stored_bytes,
                            header.method == 0 ? "stored" : "compressed"));
  }
}

/// An entry of the directory. The header before the member, and its stored bytes from `data` on, lie from `begin` to
/// `end`.
struct Entry {
  Header header;
  uint64_t begin = 0, data = 0, end = 0;
};

ZipMember member_of(const Entry& entry) {
  return {.name = std::string(entry.header.name),
          .method = entry.header.method == 0 ? ZipMethod::kStored : ZipMethod::kDeflated,
          .crc = static_cast<uint32_t>(entry.header.crc),
          .stored_bytes = static_cast<int64_t>(entry.header.stored_bytes),
          .bytes = static_cast<int64_t>(entry.header.bytes),
          .data_offset = static_cast<int64_t>(entry.data)};
}

/// Throws where two members have one name, or share bytes with each other or with the directory at `directory_offset`.
void check_together(std::vector<Entry> entries, uint64_t directory_offset) {
  const auto name = [](const Entry& entry) { return entry.header.name; };
  std::ranges::sort(entries, {}, name);
  const auto twice = std::ranges::adjacent_find(entries, {}, name);
  if (twice != entries.end()) throw Fault(fmt::format("member '{}' is there twice", name(*twice)));
  std::ranges::sort(entries, {}, &Entry::begin);
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool last = i + 1 == entries.size();
    if (entries[i].end > (last ? directory_offset : entries[i + 1].begin)) {
      throw Fault(fmt::format("member '{}' overlaps {}", name(entries[i]), last ? "the ZIP directory" : "another one"));
    }
  }
}

class DirectoryReader {
 public:
  explicit DirectoryReader(const std::filesystem::path& archive)
      : file_bytes_(static_cast<uint64_t>(regular_file_bytes(archive))), file_(pread_file(archive)) {}

  std::vector<ZipMember> members() const {
    const Directory directory = find_directory();
    check_size(directory);
    const std::string text = read(directory.offset, directory.bytes);
    std::string_view rest = text;
    std::vector<Entry> entries;
    for (uint64_t i = 0; i < directory.entry_count; ++i) {
      entries.push_back(take_entry(rest));
      locate(entries.back());
    }
    if (!rest.empty()) {
      throw too_many(directory);
    }
    check_together(entries, directory.offset);
    std::vector<ZipMember> members;
    for (const Entry& entry : entries) members.push_back(member_of(entry));
    return members;
  }

 private:
  struct Directory {
    uint64_t entry_count, bytes, offset;
    uint64_t end;  ///< where it has to end: offset of the first record behind it
  };

  std::string read(uint64_t offset, uint64_t bytes) const {
    if (offset > file_bytes_ || bytes > file_bytes_ - offset) {
      throw Fault(fmt::format("expected {} bytes at {}, the file has {} bytes", bytes, offset, file_bytes_));
    }
    std::string text(bytes, '\0');
    file_->read(static_cast<int64_t>(offset), std::as_writable_bytes(std::span(text)));
    return text;
  }

  static Fault too_many(const Directory& directory) {
    return Fault(fmt::format("its ZIP directory has more than the {} members it claims", directory.entry_count));
  }
  static void check_size(const Directory& directory);
  Directory find_directory() const;
  void widen(Directory& directory) const;
  Entry take_entry(std::string_view& rest) const;
  void locate(Entry& entry) const;

  uint64_t file_bytes_;
  std::unique_ptr<ByteSource> file_;
};

DirectoryReader::Directory DirectoryReader::find_directory() const {
  const uint64_t tail_bytes = std::min(file_bytes_, kEndBytes + kMaxCommentBytes);
  const std::string tail = read(file_bytes_ - tail_bytes, tail_bytes);
  const size_t found = tail_bytes < kEndBytes ? std::string::npos : tail.rfind(kEnd, tail_bytes - kEndBytes);
  if (found == std::string::npos) {
    throw Fault("expected a ZIP archive, found no ZIP directory at its end: the file is cut or of another format");
  }
  const Record end(std::string_view(tail).substr(found));
  if (found + kEndBytes + end.u16(20) != tail_bytes) throw Fault("its end and the comment there differ in length");
  if (end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != end.u16(10)) throw Fault(kSeveralParts);
  Directory directory = {end.u16(10), end.u32(12), end.u32(16), file_bytes_ - tail_bytes + found};
  widen(directory);
  if (directory.offset > directory.end || directory.bytes != directory.end - directory.offset) {
    throw Fault(fmt::format("its ZIP directory claims {} bytes from {} on, and has to end at {}", directory.bytes,
                            directory.offset, directory.end));
  }
  return directory;
}

/// Throws where the directory is larger than any that is read, or than that many members can make it: a file with holes
/// in it may claim a directory of any size.
void DirectoryReader::check_size(const Directory& directory) {
  if (directory.bytes > kMaxDirectoryBytes) {
    throw Fault(
        fmt::format("expected a ZIP directory of at most {} bytes, found {}", kMaxDirectoryBytes, directory.bytes));
  }
  if (directory.entry_count > directory.bytes / kEntryBytes) throw Fault(kFewerMembers);
  if (directory.bytes > directory.entry_count * kMaxEntryBytes) throw too_many(directory);
}

/// Takes the values of the 64-bit end record, where there is one.
void DirectoryReader::widen(Directory& directory) const {
  if (directory.end < kLocator64Bytes) return;
  const uint64_t locator_offset = directory.end - kLocator64Bytes;
  const std::string locator_bytes = read(locator_offset, kLocator64Bytes);
  const Record locator(locator_bytes);
  if (!locator.begins_with(kLocator64)) return;
  const uint64_t offset = locator.u64(8);
  const std::string bytes = read(offset, kEnd64Bytes);
  const Record end(bytes);
  if (!end.begins_with(kEnd64) || offset + kEnd64Bytes > locator_offset || end.u64(4) != locator_offset - offset - 12) {
    throw Fault("the 64-bit record of its ZIP directory is damaged");
  }
  if (locator.u32(4) != 0 || locator.u32(16) != 1 || end.u32(16) != 0 || end.u32(20) != 0 ||
      end.u64(24) != end.u64(32)) {
    throw Fault(kSeveralParts);
  }
  const auto take = [](uint64_t& value, uint64_t wide, uint64_t marker) {
    if (value != marker && value != wide) throw Fault("the two end records of its ZIP directory differ");
    value = wide;
  };
  take(directory.entry_count, end.u64(32), kCountIn64);
  take(directory.bytes, end.u64(40), kIn64);
  take(directory.offset, end.u64(48), kIn64);
  directory.end = offset;
}

Entry DirectoryReader::take_entry(std::string_view& rest) const {
  const Record record(rest);
  if (!record.begins_with(kEntry)) throw Fault(kFewerMembers);
  const size_t name_bytes = record.u16(28), extra_bytes = record.u16(30);
  const size_t entry_bytes = kEntryBytes + name_bytes + extra_bytes + record.u16(32);
  Entry entry;
  entry.begin = record.u32(42);
  if (entry_bytes > rest.size()) throw Fault("its ZIP directory ends too early");
  if (record.u16(34) != 0) throw Fault(kSeveralParts);
  Header& header = entry.header;
  header = header_of(record, 8, rest.substr(kEntryBytes, name_bytes));
  take_extra64(rest.substr(kEntryBytes + name_bytes, extra_bytes), {&header.bytes, &header.stored_bytes, &entry.begin});
  check(header, file_bytes_);
  rest.remove_prefix(entry_bytes);
  return entry;
}

/// Finds where the member's bytes lie, and holds the header before them against the directory.
void DirectoryReader::locate(Entry& entry) const {
  const Header& expected = entry.header;
  const std::string fixed = read(entry.begin, kLocalBytes);
  const Record record(fixed);
  const auto fault = [&](const char* what) {
    return Fault(fmt::format("the header before member '{}' {}", expected.name, what));
  };
  if (!record.begins_with(kLocal)) throw fault("is damaged");
  const size_t name_bytes = record.u16(26), extra_bytes = record.u16(28);
  const std::string rest = read(entry.begin + kLocalBytes, name_bytes + extra_bytes);
  Header header = header_of(record, 6, std::string_view(rest).substr(0, name_bytes));
  take_extra64(std::string_view(rest).substr(name_bytes), {&header.bytes, &header.stored_bytes});
  if (header.name != expected.name || header.flags != expected.flags || header.method != expected.method) {
    throw fault("has another name, method or flags than the directory");
  }
  const bool may_be_left_out = (expected.flags & kSizesFollow) != 0;
  const auto differ = [&](uint64_t a, uint64_t b) { return a != b && !(may_be_left_out && a == 0); };
  if (differ(header.crc, expected.crc) || differ(header.stored_bytes, expected.stored_bytes) ||
      differ(header.bytes, expected.bytes)) {
    throw fault("has another checksum or size than the directory");
  }
  entry.data = entry.begin + kLocalBytes + rest.size();
  entry.end = entry.data + expected.stored_bytes;
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const std::filesystem::path& archive) {
  try {
    return DirectoryReader(archive).members();
  } catch (const Fault& fault) {
    throw ZipError(fmt::format("{}: {}", archive.string(), fault.what()));
  }
}

}  // namespace tutti::data
