// Reads stored members as they lie and deflated ones through zlib.
#include "data/zip_archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "data/byte_source.h"
#include "data/checksum.h"
#include "data/data_error.h"
#include "data/zip_directory.h"

namespace tutti::data {
namespace {

std::vector<ZipMember> members_of(const std::filesystem::path& archive) {
  try {
    return read_zip_directory(archive);
  } catch (const ZipError& error) {
    throw DataError(fmt::format("{}; fetch it or write it again", error.what()));
  }
}

ZipMember find(const std::filesystem::path& archive, const std::string& name) {
  std::vector<std::string> names;
  for (ZipMember& member : members_of(archive)) {
    if (member.name == name) return std::move(member);
    names.push_back(std::move(member.name));
  }
  throw DataError(
      fmt::format("{}: expected the member '{}', found {}", archive.string(), name, fmt::join(names, ", ")));
}

class MemberStream : public ByteStream {
 public:
  MemberStream(const std::filesystem::path& archive, const std::string& member)
      : name_(fmt::format("{}:{}", archive.string(), member)),
        member_(find(archive, member)),
        file_(pread_file(archive)) {
    inflater_.next_in = Z_NULL;
    if (::inflateInit2(&inflater_, -MAX_WBITS) != Z_OK) throw DataError(name_ + ": zlib cannot start");
  }
  ~MemberStream() override { ::inflateEnd(&inflater_); }
  MemberStream(const MemberStream&) = delete;
  MemberStream& operator=(const MemberStream&) = delete;

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

  std::string name_;
  ZipMember member_;
  std::unique_ptr<ByteSource> file_;
  z_stream inflater_ = {};
  std::vector<std::byte> input_;  // what inflater_ reads from
  int64_t stored_read_ = 0;       // bytes of the archive used so far
  int64_t read_ = 0;              // bytes given out so far
  uint32_t crc_ = 0;              // of them
};

void MemberStream::refill() {
  constexpr int64_t kPartBytes = int64_t{1} << 17;
  const int64_t size = std::min(kPartBytes, member_.stored_bytes - stored_read_);
  input_.resize(static_cast<size_t>(size));
  file_->read(member_.data_offset + stored_read_, input_);
  stored_read_ += size;
  inflater_.next_in = reinterpret_cast<Bytef*>(input_.data());
  inflater_.avail_in = static_cast<uInt>(size);
}

size_t MemberStream::read_some(std::span<std::byte> out) {
  if (inflater_.avail_in == 0 && stored_read_ < member_.stored_bytes) refill();
  if (member_.method == ZipMethod::kStored) {
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

size_t MemberStream::read(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size() && read_ < member_.bytes) {
    const size_t left = std::min(out.size() - done, static_cast<size_t>(member_.bytes - read_));
    const std::span<std::byte> part = out.subspan(done, left);
    const auto unused = [&] { return member_.stored_bytes - stored_read_ + inflater_.avail_in; };
    const int64_t unused_before = unused();
    const size_t got = read_some(part);
    if (got == 0 && unused() == unused_before)
      throw DataError(fmt::format("{}: the member is cut; fetch it again", name_));
    crc_ = crc32(crc_, part.first(got));
    read_ += static_cast<int64_t>(got);
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
  return std::make_unique<MemberStream>(archive, member);
}

}  // namespace tutti::data
