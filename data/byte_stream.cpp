// Plain and gzip files by zlib.
#include "data/byte_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/byte_source.h"
#include "data/data_error.h"

namespace tutti::data {
namespace {

constexpr unsigned kBufferBytes = 1u << 17;
constexpr size_t kReadBytes = size_t{1} << 30;  // gzread counts in int

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(const std::filesystem::path& path) : name_(path.string()) {
    require_regular_file(path);
    file_ = ::gzopen(name_.c_str(), "rb");
    if (file_ == nullptr) throw DataError(fmt::format("{}: cannot be opened: {}", name_, std::strerror(errno)));
    ::gzbuffer(file_, kBufferBytes);
  }
  ~GzipStream() override { ::gzclose_r(file_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  const std::string& name() const override { return name_; }

  size_t read(std::span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const auto wanted = static_cast<unsigned>(std::min(out.size() - done, kReadBytes));
      const int got = ::gzread(file_, out.data() + done, wanted);
      done += static_cast<size_t>(std::max(got, 0));
      if (got == static_cast<int>(wanted)) continue;
      check();
      break;
    }
    return done;
  }

  void rewind() override {
    if (::gzrewind(file_) != 0) throw DataError(fmt::format("{}: cannot be read a second time", name_));
  }

 private:
  void check() const {
    int error = Z_OK;
    const char* text = ::gzerror(file_, &error);
    if (error == Z_ERRNO) text = std::strerror(errno);
    if (error == Z_BUF_ERROR) text = "it ends too early";
    if (error != Z_OK && error != Z_STREAM_END) {
      throw DataError(fmt::format("{}: the file is cut or damaged: {}; fetch it again", name_, text));
    }
  }

  std::string name_;
  gzFile file_ = nullptr;
};

}  // namespace

void ByteStream::read_all(std::span<std::byte> out, const std::string& what) {
  const size_t got = read(out);
  if (got != out.size()) {
    throw DataError(fmt::format("{}: the file is cut: expected {} bytes of {}, found {}; fetch it again", name(),
                                out.size(), what, got));
  }
}

std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path) {
  return std::make_unique<GzipStream>(path);
}

}  // namespace tutti::data
