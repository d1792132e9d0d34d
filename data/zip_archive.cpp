// ZIP archives. Format: PKWARE, .ZIP File Format Specification (APPNOTE.TXT) 6.3.
#include "data/zip_archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "data/checksum.h"
#include "data/data_error.h"

namespace tutti::data {
namespace {

constexpr uint32_t kEndOfDirectory = 0x06054b50, kEndOfDirectory64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr int64_t kEndOfDirectoryBytes = 22, kLocator64Bytes = 20, kDirectoryEntryBytes = 46, kLocalHeaderBytes = 30;
constexpr int64_t kLongestComment = 65535;
constexpr uint64_t kSeeExtra16 = 0xFFFF, kSeeExtra32 = 0xFFFFFFFF;  // the value stands in a ZIP64 record

struct Member {
  std::string name;
  uint64_t method = 0, crc = 0, stored_bytes = 0, bytes = 0, header_offset = 0;
};

// Little-endian numbers in a part of the archive.
class Record {
 public:
  Record(std::string bytes, const std::string& archive) : bytes_(std::move(bytes)), archive_(archive) {}
  uint64_t number(int64_t at, int width) const {
    if (at < 0 || at + width > static_cast<int64_t>(bytes_.size())) {
      throw DataError(fmt::format("{}: the archive is cut or damaged; fetch it again", archive_));
    }
    uint64_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[static_cast<size_t>(at + i)]);
    return value;
  }
  std::string text(int64_t at, uint64_t size) const {
    if (at + static_cast<int64_t>(size) > static_cast<int64_t>(bytes_.size()))
      number(at + static_cast<int64_t>(size), 1);
    return bytes_.substr(static_cast<size_t>(at), size);
  }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::string bytes_;
  const std::string& archive_;
};

class Archive {
 public:
  explicit Archive(const std::filesystem::path& path) : name_(path.string()), file_(path, std::ios::binary) {
    if (!file_) throw DataError(fmt::format("{}: cannot be opened", name_));
    file_.seekg(0, std::ios::end);
    size_ = static_cast<int64_t>(file_.tellg());
  }
  const std::string& name() const { return name_; }

  Record part(int64_t offset, int64_t size) {
    std::string bytes(static_cast<size_t>(std::clamp<int64_t>(size, 0, size_)), '\0');
    file_.clear();
    file_.seekg(offset);
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(file_.gcount()));
    return {std::move(bytes), name_};
  }

  std::vector<Member> members();

  /// Where the bytes of a member begin.
  int64_t data_offset(const Member& member) {
    const auto offset = static_cast<int64_t>(member.header_offset);
    const Record header = part(offset, kLocalHeaderBytes);
    if (header.number(0, 4) != kLocalHeader) throw DataError(fmt::format("{}: the archive is damaged", name_));
    return offset + kLocalHeaderBytes + static_cast<int64_t>(header.number(26, 2) + header.number(28, 2));
  }

 private:
  std::pair<int64_t, int64_t> find_directory();

  std::string name_;
  std::ifstream file_;
  int64_t size_ = 0;
};

// Offset and size of the central directory.
std::pair<int64_t, int64_t> Archive::find_directory() {
  const int64_t begin = std::max<int64_t>(0, size_ - kLongestComment - kEndOfDirectoryBytes);
  const Record tail = part(begin, size_ - begin);
  int64_t at = tail.size() - kEndOfDirectoryBytes;
  while (at >= 0 && tail.number(at, 4) != kEndOfDirectory) --at;
  if (at < 0)
    throw DataError(fmt::format("{}: expected a ZIP archive (.npz), found another format or a cut file", name_));
  const uint64_t size = tail.number(at + 12, 4), offset = tail.number(at + 16, 4);
  if (tail.number(at + 10, 2) != kSeeExtra16 && size != kSeeExtra32 && offset != kSeeExtra32) return {offset, size};
  const Record locator = part(begin + at - kLocator64Bytes, kLocator64Bytes);
  if (locator.number(0, 4) != kLocator64) return {offset, size};
  const Record end = part(static_cast<int64_t>(locator.number(8, 8)), 56);
  if (end.number(0, 4) != kEndOfDirectory64) throw DataError(fmt::format("{}: the archive is damaged", name_));
  return {end.number(48, 8), end.number(40, 8)};
}

// Replaces what a directory entry leaves to its ZIP64 extra field (identifier 1), in the order the format gives.
void read_extra64(const Record& directory, int64_t at, int64_t end, Member& member) {
  for (; at + 4 <= end; at += 4 + static_cast<int64_t>(directory.number(at + 2, 2))) {
    if (directory.number(at, 2) != 1) continue;
    int64_t value = at + 4;
    for (uint64_t* field : {&member.bytes, &member.stored_bytes, &member.header_offset}) {
      if (*field != kSeeExtra32) continue;
      *field = directory.number(value, 8);
      value += 8;
    }
    return;
  }
}

std::vector<Member> Archive::members() {
  const auto [offset, size] = find_directory();
  const Record directory = part(offset, size);
  std::vector<Member> members;
  for (int64_t at = 0; at + kDirectoryEntryBytes <= directory.size();) {
    if (directory.number(at, 4) != kDirectoryEntry) break;
    const uint64_t name_bytes = directory.number(at + 28, 2), extra_bytes = directory.number(at + 30, 2);
    Member member{directory.text(at + kDirectoryEntryBytes, name_bytes),
                  directory.number(at + 10, 2),
                  directory.number(at + 16, 4),
                  directory.number(at + 20, 4),
                  directory.number(at + 24, 4),
                  directory.number(at + 42, 4)};
    const int64_t extra = at + kDirectoryEntryBytes + static_cast<int64_t>(name_bytes);
    read_extra64(directory, extra, extra + static_cast<int64_t>(extra_bytes), member);
    members.push_back(std::move(member));
    at = extra + static_cast<int64_t>(extra_bytes + directory.number(at + 32, 2));
  }
  return members;
}

class ZipMember : public ByteStream {
 public:
  ZipMember(const std::filesystem::path& path, const std::string& member_name)
      : archive_(path), name_(fmt::format("{}:{}", path.string(), member_name)) {
    std::vector<std::string> names;
    std::optional<Member> found;
    for (const Member& member : archive_.members()) {
      names.push_back(member.name);
      if (member.name == member_name) found = member;
    }
    if (!found) {
      throw DataError(
          fmt::format("{}: expected the member '{}', found {}", path.string(), member_name, fmt::join(names, ", ")));
    }
    member_ = *found;
    if (member_.method != 0 && member_.method != Z_DEFLATED) {
      throw DataError(
          fmt::format("{}: expected a member that is stored or deflated, found method {}", name_, member_.method));
    }
    inflater_.next_in = Z_NULL;
    if (::inflateInit2(&inflater_, -MAX_WBITS) != Z_OK) throw DataError(name_ + ": zlib cannot start");
    data_offset_ = archive_.data_offset(member_);
  }
  ~ZipMember() override { ::inflateEnd(&inflater_); }
  ZipMember(const ZipMember&) = delete;
  ZipMember& operator=(const ZipMember&) = delete;

  const std::string& name() const override { return name_; }
  size_t read(std::span<std::byte> out) override;
  void rewind() override {
    ::inflateReset(&inflater_);
    inflater_.avail_in = 0;
    stored_read_ = read_ = 0;
    crc_ = 0;
  }

 private:
  void refill();
  size_t read_some(std::span<std::byte> out);

  Archive archive_;
  std::string name_;
  Member member_;
  int64_t data_offset_ = 0;
  z_stream inflater_ = {};
  std::string input_;         // what inflater_ reads from
  uint64_t stored_read_ = 0;  // bytes of the archive used so far
  uint64_t read_ = 0;         // bytes given out so far
  uint32_t crc_ = 0;          // of them
};

void ZipMember::refill() {
  constexpr uint64_t kPartBytes = uint64_t{1} << 17;
  const uint64_t size = std::min(kPartBytes, member_.stored_bytes - stored_read_);
  input_ = archive_.part(data_offset_ + static_cast<int64_t>(stored_read_), static_cast<int64_t>(size)).text(0, size);
  stored_read_ += size;
  inflater_.next_in = reinterpret_cast<Bytef*>(input_.data());
  inflater_.avail_in = static_cast<uInt>(input_.size());
}

size_t ZipMember::read_some(std::span<std::byte> out) {
  if (inflater_.avail_in == 0 && stored_read_ < member_.stored_bytes) refill();
  if (member_.method == 0) {
    const size_t size = std::min<size_t>(out.size(), inflater_.avail_in);
    std::copy_n(reinterpret_cast<const std::byte*>(inflater_.next_in), size, out.begin());
    inflater_.next_in += size;
    inflater_.avail_in -= static_cast<uInt>(size);
    return size;
  }
  constexpr size_t kMostBytes = size_t{1} << 30;
  inflater_.next_out = reinterpret_cast<Bytef*>(out.data());
  inflater_.avail_out = static_cast<uInt>(std::min(out.size(), kMostBytes));
  const uInt room = inflater_.avail_out;
  const int status = ::inflate(&inflater_, Z_NO_FLUSH);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
    throw DataError(fmt::format("{}: the archive is damaged; fetch it again", name_));
  }
  return room - inflater_.avail_out;
}

size_t ZipMember::read(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size() && read_ < member_.bytes) {
    const uint64_t left = std::min<uint64_t>(out.size() - done, member_.bytes - read_);
    const std::span<std::byte> part = out.subspan(done, left);
    const auto unused = [&] { return member_.stored_bytes - stored_read_ + inflater_.avail_in; };
    const uint64_t unused_before = unused();
    const size_t got = read_some(part);
    if (got == 0 && unused() == unused_before)
      throw DataError(fmt::format("{}: the member is cut; fetch it again", name_));
    crc_ = crc32(crc_, part.first(got));
    read_ += got;
    done += got;
  }
  if (done > 0 && read_ == member_.bytes && crc_ != member_.crc) {
    throw DataError(
        fmt::format("{}: expected checksum {:08x}, found {:08x}; fetch it again", name_, member_.crc, crc_));
  }
  return done;
}

}  // namespace

std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& archive, const std::string& member) {
  return std::make_unique<ZipMember>(archive, member);
}

}  // namespace tutti::data
