// NumPy arrays. Format: numpy.lib.format, versions 1.0 to 3.0.
#include "data/import_npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "data/byte_stream.h"
#include "data/data_error.h"
#include "data/paired_source.h"
#include "data/zip_archive.h"

namespace tutti::data {
namespace {

// The text after 'KEY': in the header, which is a Python dictionary.
std::string_view value_of(std::string_view header, std::string_view key, const std::string& name) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) throw DataError(fmt::format("{}: the NumPy header has no '{}'", name, key));
  std::string_view value = header.substr(at + quoted.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

ElementType type_of(std::string_view header, const std::string& name) {
  static const std::map<std::string, ElementType, std::less<>> types = {
      {"|u1", ElementType::kUint8},   {"|b1", ElementType::kUint8},  {"|i1", ElementType::kInt8},
      {"<i2", ElementType::kInt16},   {"<i4", ElementType::kInt32},  {"<i8", ElementType::kInt64},
      {"<f4", ElementType::kFloat32}, {"<f8", ElementType::kFloat64}};
  std::string_view value = value_of(header, "descr", name);
  if (value.starts_with('\'')) value = value.substr(1, value.find('\'', 1) - 1);
  const auto type = types.find(value);
  if (type == types.end()) {
    throw DataError(
        fmt::format("{}: expected elements of uint8, bool, int8, int16, int32, int64, float32 or float64 "
                    "(little-endian), found '{}'; convert with astype",
                    name, value.substr(0, 40)));
  }
  return type->second;
}

std::vector<int64_t> shape_of(std::string_view header, const std::string& name) {
  std::string_view value = value_of(header, "shape", name);
  const size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos) {
    throw DataError(fmt::format("{}: expected a shape in the NumPy header", name));
  }
  value = value.substr(1, end - 1);
  std::vector<int64_t> shape;
  while ((value.remove_prefix(std::min(value.find_first_not_of(", "), value.size())), !value.empty())) {
    int64_t size = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc{} || size < 0) throw DataError(fmt::format("{}: not a shape: ({})", name, value));
    shape.push_back(size);
    value.remove_prefix(static_cast<size_t>(rest - value.data()));
  }
  return shape;
}

// One array: its header, then rows on demand.
class NpyArray {
 public:
  NpyArray(std::unique_ptr<ByteStream> stream, std::string field_name) : stream_(std::move(stream)) {
    field_.name = std::move(field_name);
    read_header();
  }
  const Field& field() const { return field_; }
  int64_t row_count() const { return row_count_; }
  const std::string& name() const { return stream_->name(); }

  void read(int64_t count, std::vector<std::byte>& rows) {
    rows.resize(static_cast<size_t>(count * field_.row_bytes()));
    stream_->read_all(rows, fmt::format("rows [{}, {}) of {}", next_row_, next_row_ + count, row_count_));
    next_row_ += count;
  }
  void rewind() {
    stream_->rewind();
    read_header();
  }

 private:
  void read_header();

  std::unique_ptr<ByteStream> stream_;
  Field field_;
  int64_t row_count_ = 0, next_row_ = 0;
};

void NpyArray::read_header() {
  std::byte magic[8];  // "\x93NUMPY", major and minor version
  stream_->read_all(magic, "the NumPy header");
  const int version = std::to_integer<int>(magic[6]);
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0) {
    throw DataError(fmt::format("{}: expected a NumPy array (.npy), found another format", name()));
  }
  if (version < 1 || version > 3) {
    throw DataError(fmt::format("{}: expected NumPy format version 1, 2 or 3, found {}", name(), version));
  }
  std::byte length[4] = {};  // little-endian
  stream_->read_all(std::span(length).first(version == 1 ? 2 : 4), "the NumPy header");
  size_t header_bytes = 0;
  for (size_t i = 0; i < 4; ++i) header_bytes |= std::to_integer<size_t>(length[i]) << (8 * i);
  if (header_bytes > size_t{1} << 20) throw DataError(fmt::format("{}: the NumPy header is damaged", name()));
  std::string header(header_bytes, '\0');
  stream_->read_all(std::as_writable_bytes(std::span(header)), "the NumPy header");
  if (!value_of(header, "fortran_order", name()).starts_with("False")) {
    throw DataError(
        fmt::format("{}: expected C order, found Fortran order; convert with np.ascontiguousarray", name()));
  }
  field_.type = type_of(header, name());
  field_.shape = shape_of(header, name());
  if (field_.shape.empty()) throw DataError(fmt::format("{}: expected rows, found a scalar", name()));
  row_count_ = field_.shape[0];
  field_.shape.erase(field_.shape.begin());
  checked_bytes(field_, row_count_, name());
  next_row_ = 0;
}

class NpySource : public PairedSource<NpyArray> {
 public:
  NpySource(std::unique_ptr<ByteStream> x, std::unique_ptr<ByteStream> y)
      : PairedSource({std::move(x), "x"}, {std::move(y), "y"}, "inputs and targets") {}
};

}  // namespace

std::unique_ptr<RowSource> import_npy(const std::filesystem::path& x, const std::filesystem::path& y) {
  return std::make_unique<NpySource>(open_stream(x), open_stream(y));
}

std::unique_ptr<RowSource> import_npz(const std::filesystem::path& archive, const std::string& x,
                                      const std::string& y) {
  return std::make_unique<NpySource>(open_zip_member(archive, x + ".npy"), open_zip_member(archive, y + ".npy"));
}

}  // namespace tutti::data
