// IDX files.
#include "data/import_idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/byte_stream.h"
#include "data/data_error.h"
#include "data/paired_source.h"

namespace tutti::data {
namespace {

ElementType type_of(int code, const std::string& name) {
  switch (code) {
    case 0x08:
      return ElementType::kUint8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0B:
      return ElementType::kInt16;
    case 0x0C:
      return ElementType::kInt32;
    case 0x0D:
      return ElementType::kFloat32;
    case 0x0E:
      return ElementType::kFloat64;
    default:
      throw DataError(
          fmt::format("{}: expected an IDX type code of 0x08, 0x09 or 0x0B to 0x0E, found 0x{:02X}", name, code));
  }
}

// One IDX file: its header, then rows on demand.
class IdxFile {
 public:
  IdxFile(const std::filesystem::path& path, std::string field_name) : stream_(open_stream(path)) {
    field_.name = std::move(field_name);
    read_header();
  }

  Field& field() { return field_; }
  int64_t row_count() const { return row_count_; }
  const std::string& name() const { return stream_->name(); }

  void read(int64_t count, std::vector<std::byte>& rows) {
    rows.resize(static_cast<size_t>(count * field_.row_bytes()));
    stream_->read_all(rows, fmt::format("rows [{}, {}) of {}", next_row_, next_row_ + count, row_count_));
    next_row_ += count;
    const int64_t width = size_bytes(field_.type);
    for (auto element = rows.begin(); width > 1 && element != rows.end(); element += width) {
      std::reverse(element, element + width);
    }
  }

  void rewind() {
    stream_->rewind();
    read_header();
  }

 private:
  void read_header() {
    std::byte magic[4];
    stream_->read_all(magic, "the header");
    if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || magic[3] == std::byte{0}) {
      throw DataError(
          fmt::format("{}: expected an IDX file (two zero bytes, a type, at least one dimension), found "
                      "{:02x} {:02x} {:02x} {:02x}",
                      name(), std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1]),
                      std::to_integer<int>(magic[2]), std::to_integer<int>(magic[3])));
    }
    field_.type = type_of(std::to_integer<int>(magic[2]), name());
    std::vector<int64_t> dimensions(static_cast<size_t>(magic[3]));
    for (int64_t& dimension : dimensions) {
      std::byte word[4];
      stream_->read_all(word, "the dimensions");
      for (const std::byte byte : word) dimension = dimension << 8 | std::to_integer<int64_t>(byte);
    }
    row_count_ = dimensions[0];
    field_.shape.assign(dimensions.begin() + 1, dimensions.end());
    checked_bytes(field_, row_count_, name());
    next_row_ = 0;
  }

  std::unique_ptr<ByteStream> stream_;
  Field field_;
  int64_t row_count_ = 0, next_row_ = 0;
};

/// Images get the dimension of their one channel.
class IdxSource : public PairedSource<IdxFile> {
 public:
  IdxSource(const std::filesystem::path& images, const std::filesystem::path& labels)
      : PairedSource({images, "x"}, {labels, "y"}, "images and labels") {
    if (!target_.field().shape.empty() || !is_integer(target_.field().type)) {
      throw DataError(fmt::format("{}: expected one integer per row as label, found {}", target_.name(),
                                  describe(target_.field())));
    }
    std::vector<int64_t>& shape = inputs_[0].shape;
    if (shape.size() == 2) shape.insert(shape.begin(), 1);
  }
};

}  // namespace

std::unique_ptr<RowSource> import_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  return std::make_unique<IdxSource>(images, labels);
}

}  // namespace tutti::data
