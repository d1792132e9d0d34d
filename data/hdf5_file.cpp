// The only includer of hdf5.h.
#include "data/hdf5_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <utility>

namespace tutti::data {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t) && std::is_same_v<herr_t, int>);
static_assert(std::is_nothrow_move_constructible_v<Hdf5Handle> && std::is_nothrow_move_assignable_v<Hdf5Handle>);

constexpr int64_t kAlignmentBytes = 4096;
constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr unsigned kDeflateLevel = 4;

// Held during every call: many builds of the library are not thread-safe. Switches off the library's own printing of
// errors, which is a setting of each thread.
class LibraryLock {
 public:
  LibraryLock() : lock_(mutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  std::lock_guard<std::recursive_mutex> lock_;
};

std::string innermost_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* text) -> herr_t {
        if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
        return 0;
      },
      &reason);
  return reason.empty() ? "the library gives no reason" : reason;
}

Hdf5Handle owned(hid_t id, Hdf5Handle::CloseFunction close, const std::string& object, const std::string& action) {
  return {check_hdf5(id, object, action), close};
}

hid_t native_type(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return H5T_NATIVE_UINT8;
    case ElementType::kInt8:
      return H5T_NATIVE_INT8;
    case ElementType::kInt16:
      return H5T_NATIVE_INT16;
    case ElementType::kInt32:
      return H5T_NATIVE_INT32;
    case ElementType::kInt64:
      return H5T_NATIVE_INT64;
    case ElementType::kFloat32:
      return H5T_NATIVE_FLOAT;
    case ElementType::kFloat64:
      break;
  }
  return H5T_NATIVE_DOUBLE;
}

constexpr int64_t kMaxTextBytes = int64_t{256} << 20;
constexpr int64_t kMaxNumbers = int64_t{16} << 20;

constexpr ElementType kElementTypes[] = {ElementType::kUint8,  ElementType::kInt8,  ElementType::kInt16,
                                         ElementType::kInt32,  ElementType::kInt64, ElementType::kFloat32,
                                         ElementType::kFloat64};

/// Texts of a fixed width, filled up with zeros. HDF5 keeps texts of variable length in a heap without a checksum, and
/// a flipped bit there can make the library itself crash or never return.
Hdf5Handle text_type(size_t width, const std::string& object) {
  Hdf5Handle type = owned(H5Tcopy(H5T_C_S1), H5Tclose, object, "copy the text type");
  check_hdf5(H5Tset_size(type.id(), width), object, "set the size of the text type");
  check_hdf5(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), object, "set the padding of the text type");
  check_hdf5(H5Tset_cset(type.id(), H5T_CSET_UTF8), object, "set the character set of the text type");
  return type;
}

/// The texts one after the other, each filled up with zeros to the length of the longest, at least 1.
std::string padded_texts(const std::vector<std::string>& texts) {
  size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  std::string padded;
  padded.reserve(width * texts.size());
  for (const std::string& text : texts) padded.append(text).append(width - text.size(), '\0');
  return padded;
}

Hdf5Handle list_space(size_t count, const std::string& object) {
  const hsize_t size = count;
  return owned(H5Screate_simple(1, &size, nullptr), H5Sclose, object, "describe a list");
}

Hdf5Handle scalar_space(const std::string& object) {
  return owned(H5Screate(H5S_SCALAR), H5Sclose, object, "describe a scalar");
}

struct OpenAttribute {
  Hdf5Handle handle, space;
  int64_t count;
};

OpenAttribute open_attribute(hid_t owner, const std::string& object, const std::string& attribute) {
  const std::string action = fmt::format("read the attribute '{}'", attribute);
  OpenAttribute result;
  result.handle = owned(H5Aopen(owner, attribute.c_str(), H5P_DEFAULT), H5Aclose, object, action);
  result.space = owned(H5Aget_space(result.handle.id()), H5Sclose, object, action);
  result.count = check_hdf5(H5Sget_simple_extent_npoints(result.space.id()), object, action);
  return result;
}

void put_attribute(hid_t owner, const std::string& object, const std::string& attribute, hid_t type,
                   const Hdf5Handle& space, const void* value) {
  const std::string action = fmt::format("write the attribute '{}'", attribute);
  const Hdf5Handle handle =
      owned(H5Acreate2(owner, attribute.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, object, action);
  check_hdf5(H5Awrite(handle.id(), type, value), object, action);
}

std::vector<hsize_t> extents_of(std::span<const int64_t> shape) { return {shape.begin(), shape.end()}; }

// A selection of rows [begin, begin + count) of a data set, in the file and in memory.
struct RowSelection {
  Hdf5Handle file, memory;
};

RowSelection select_rows(const Hdf5Dataset& dataset, hid_t id, int64_t begin, int64_t count, size_t size_given) {
  const std::vector<int64_t> shape = dataset.shape();
  std::vector<hsize_t> extents = extents_of(shape), start(shape.size(), 0);
  const int64_t row_elements = std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  const int64_t needed = count * row_elements * size_bytes(dataset.type());
  if (begin < 0 || count < 0 || begin + count > shape[0] || needed != static_cast<int64_t>(size_given)) {
    throw Hdf5Error(fmt::format("{}: rows [{}, {}) of {} in a buffer of {} bytes, which takes {}", dataset.name(),
                                begin, begin + count, shape[0], size_given, needed));
  }
  start[0] = static_cast<hsize_t>(begin);
  extents[0] = static_cast<hsize_t>(count);
  RowSelection selection;
  selection.file = owned(H5Dget_space(id), H5Sclose, dataset.name(), "read the extents");
  check_hdf5(H5Sselect_hyperslab(selection.file.id(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr),
             dataset.name(), "select rows");
  selection.memory = owned(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose,
                           dataset.name(), "describe rows");
  return selection;
}

// The library notices a cut file at open, in words of its own.
void throw_if_truncated(const Hdf5Error& error, const std::string& name) {
  const std::string text = error.what();
  const size_t at = text.find("truncated file: eof = ");
  unsigned long long found = 0, base = 0, expected = 0;
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at, "truncated file: eof = %llu, sblock->base_addr = %llu, stored_eof = %llu", &found,
                  &base, &expected) != 3) {
    return;
  }
  throw Hdf5Error(
      fmt::format("{}: the file is cut: expected {} bytes, found {}; copy or make it again", name, expected, found));
}

}  // namespace

int64_t check_hdf5(int64_t result, const std::string& object, const std::string& action) {
  if (result >= 0) return result;
  const std::string reason = innermost_reason();
  H5Eclear2(H5E_DEFAULT);
  throw Hdf5Error(fmt::format("{}: cannot {}: {} (HDF5)", object, action, reason));
}

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  if (this != &other) {
    close();
    id_ = std::exchange(other.id_, -1);
    close_ = std::exchange(other.close_, nullptr);
  }
  return *this;
}

void Hdf5Handle::close() noexcept {
  if (id_ < 0) return;
  const LibraryLock lock;
  if (close_(std::exchange(id_, -1)) < 0) std::fputs("warning: an HDF5 object could not be closed\n", stderr);
}

bool Hdf5Object::has_attribute(const std::string& attribute) const {
  const LibraryLock lock;
  return check_hdf5(H5Aexists(handle_.id(), attribute.c_str()), name_, "look for an attribute") > 0;
}

int64_t Hdf5Object::integer_attribute(const std::string& attribute) const {
  const LibraryLock lock;
  const OpenAttribute opened = open_attribute(handle_.id(), name_, attribute);
  if (opened.count != 1) throw Hdf5Error(fmt::format("{}: attribute '{}': expected one number", name_, attribute));
  int64_t value = 0;
  check_hdf5(H5Aread(opened.handle.id(), H5T_NATIVE_INT64, &value), name_, "read the attribute " + attribute);
  return value;
}

std::vector<double> Hdf5Object::number_attribute(const std::string& attribute) const {
  const LibraryLock lock;
  const OpenAttribute opened = open_attribute(handle_.id(), name_, attribute);
  if (opened.count > kMaxNumbers) {
    throw Hdf5Error(
        fmt::format("{}: attribute '{}': expected at most {} numbers, found {}; the file is damaged, or not a shard: "
                    "make it again",
                    name_, attribute, kMaxNumbers, opened.count));
  }
  std::vector<double> values(static_cast<size_t>(opened.count));
  check_hdf5(H5Aread(opened.handle.id(), H5T_NATIVE_DOUBLE, values.data()), name_, "read the attribute " + attribute);
  return values;
}

std::string Hdf5Object::text_attribute(const std::string& attribute) const {
  const std::vector<std::string> texts = text_list_attribute(attribute);
  if (texts.size() != 1) throw Hdf5Error(fmt::format("{}: attribute '{}': expected one text", name_, attribute));
  return texts[0];
}

std::vector<std::string> Hdf5Object::text_list_attribute(const std::string& attribute) const {
  const LibraryLock lock;
  const std::string action = fmt::format("read the attribute '{}'", attribute);
  const OpenAttribute opened = open_attribute(handle_.id(), name_, attribute);
  const Hdf5Handle type = owned(H5Aget_type(opened.handle.id()), H5Tclose, name_, action);
  // To read a damaged text of variable length can crash the library.
  if (check_hdf5(H5Tis_variable_str(type.id()), name_, action) > 0) {
    throw Hdf5Error(fmt::format(
        "{}: attribute '{}': expected text of fixed width, found variable length; make the shard again with "
        "`tutti shard`",
        name_, attribute));
  }
  if (H5Tget_class(type.id()) != H5T_STRING) {
    throw Hdf5Error(fmt::format("{}: attribute '{}': expected text", name_, attribute));
  }
  const size_t width = H5Tget_size(type.id());
  if (opened.count > kMaxTextBytes / static_cast<int64_t>(std::max<size_t>(width, 1))) {
    throw Hdf5Error(
        fmt::format("{}: attribute '{}': expected at most {} bytes of text, found {} texts of {} bytes; the file is "
                    "damaged, or not a shard: make it again",
                    name_, attribute, kMaxTextBytes, opened.count, width));
  }
  std::vector<std::string> texts;
  std::string all(width * static_cast<size_t>(opened.count), '\0');
  check_hdf5(H5Aread(opened.handle.id(), type.id(), all.data()), name_, action);
  for (int64_t i = 0; i < opened.count; ++i) {
    const std::string text = all.substr(static_cast<size_t>(i) * width, width);
    texts.push_back(text.substr(0, text.find('\0')));
  }
  return texts;
}

void Hdf5Object::write_attribute(const std::string& attribute, int64_t value) {
  const LibraryLock lock;
  put_attribute(handle_.id(), name_, attribute, H5T_NATIVE_INT64, scalar_space(name_), &value);
}

void Hdf5Object::write_attribute(const std::string& attribute, std::span<const double> values) {
  const LibraryLock lock;
  put_attribute(handle_.id(), name_, attribute, H5T_NATIVE_DOUBLE, list_space(values.size(), name_), values.data());
}

void Hdf5Object::write_attribute(const std::string& attribute, const std::string& text) {
  const LibraryLock lock;
  const std::string padded = padded_texts({text});
  put_attribute(handle_.id(), name_, attribute, text_type(padded.size(), name_).id(), scalar_space(name_),
                padded.data());
}

void Hdf5Object::write_attribute(const std::string& attribute, const std::vector<std::string>& texts) {
  const LibraryLock lock;
  const std::string padded = padded_texts(texts);
  const size_t width = padded.size() / std::max<size_t>(texts.size(), 1);
  put_attribute(handle_.id(), name_, attribute, text_type(std::max<size_t>(width, 1), name_).id(),
                list_space(texts.size(), name_), padded.data());
}

ElementType Hdf5Dataset::type() const {
  const LibraryLock lock;
  const Hdf5Handle stored = owned(H5Dget_type(handle_.id()), H5Tclose, name_, "read the element type");
  const H5T_class_t kind = H5Tget_class(stored.id());
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    for (const ElementType type : kElementTypes) {
      const hid_t native = native_type(type);
      if (H5Tget_class(native) == kind && H5Tget_size(native) == H5Tget_size(stored.id()) &&
          (kind == H5T_FLOAT || H5Tget_sign(native) == H5Tget_sign(stored.id()))) {
        return type;
      }
    }
  }
  throw Hdf5Error(
      fmt::format("{}: expected elements of uint8, int8, int16, int32, int64, float32 or float64, found {} "
                  "of {} bytes",
                  name_,
                  kind == H5T_INTEGER ? "integers"
                  : kind == H5T_FLOAT ? "floats"
                                      : "another type",
                  H5Tget_size(stored.id())));
}

std::vector<int64_t> Hdf5Dataset::shape() const {
  const LibraryLock lock;
  const Hdf5Handle space = owned(H5Dget_space(handle_.id()), H5Sclose, name_, "read the extents");
  const int64_t rank = check_hdf5(H5Sget_simple_extent_ndims(space.id()), name_, "read the extents");
  if (rank < 1) throw Hdf5Error(fmt::format("{}: expected a table of rows, found a scalar", name_));
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  check_hdf5(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), name_, "read the extents");
  return {extents.begin(), extents.end()};
}

void Hdf5Dataset::check_filters() const {
  const LibraryLock lock;
  const Hdf5Handle properties = owned(H5Dget_create_plist(handle_.id()), H5Pclose, name_, "read the filters");
  const int64_t count = check_hdf5(H5Pget_nfilters(properties.id()), name_, "read the filters");
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    char filter_name[64] = "";
    size_t value_count = 0;
    unsigned flags = 0, config = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(properties.id(), i, &flags, &value_count, nullptr, sizeof filter_name, filter_name, &config);
    check_hdf5(filter, name_, "read the filters");
    if (check_hdf5(H5Zfilter_avail(filter), name_, "look for a filter") > 0) continue;
    throw Hdf5Error(
        fmt::format("{}: is compressed by filter {}{}{}, which this HDF5 library lacks; write it with gzip "
                    "or without compression",
                    name_, filter, filter_name[0] != '\0' ? " " : "", filter_name));
  }
}

std::optional<int64_t> Hdf5Dataset::offset_bytes() const {
  const LibraryLock lock;
  const Hdf5Handle properties = owned(H5Dget_create_plist(handle_.id()), H5Pclose, name_, "read the layout");
  const Hdf5Handle stored = owned(H5Dget_type(handle_.id()), H5Tclose, name_, "read the element type");
  if (H5Pget_layout(properties.id()) != H5D_CONTIGUOUS || H5Pget_external_count(properties.id()) != 0 ||
      check_hdf5(H5Tequal(stored.id(), native_type(type())), name_, "compare the element type") == 0) {
    return std::nullopt;
  }
  const haddr_t offset = H5Dget_offset(handle_.id());
  if (offset == HADDR_UNDEF) return std::nullopt;
  return static_cast<int64_t>(offset);
}

void Hdf5Dataset::read_rows(int64_t begin, int64_t count, std::span<std::byte> out) const {
  const LibraryLock lock;
  const RowSelection rows = select_rows(*this, handle_.id(), begin, count, out.size());
  check_hdf5(H5Dread(handle_.id(), native_type(type()), rows.memory.id(), rows.file.id(), H5P_DEFAULT, out.data()),
             name_, fmt::format("read rows [{}, {})", begin, begin + count));
}

void Hdf5Dataset::write_rows(int64_t begin, int64_t count, std::span<const std::byte> values) {
  const LibraryLock lock;
  const RowSelection rows = select_rows(*this, handle_.id(), begin, count, values.size());
  check_hdf5(H5Dwrite(handle_.id(), native_type(type()), rows.memory.id(), rows.file.id(), H5P_DEFAULT, values.data()),
             name_, fmt::format("write rows [{}, {})", begin, begin + count));
}

Hdf5File Hdf5File::open(const std::filesystem::path& path) {
  const LibraryLock lock;
  const std::string name = path.string();
  const Hdf5Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, name, "prepare opening");
  check_hdf5(H5Pset_file_locking(access.id(), /*use_file_locking=*/false, /*ignore_when_disabled=*/true), name,
             "switch off file locking");
  try {
    return {owned(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, name, "open"), name};
  } catch (const Hdf5Error& error) {
    throw_if_truncated(error, name);
    throw;
  }
}

Hdf5File Hdf5File::create(const std::filesystem::path& path) {
  const LibraryLock lock;
  const std::string name = path.string();
  const Hdf5Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, name, "prepare creating");
  check_hdf5(H5Pset_alignment(access.id(), kAlignmentBytes, kAlignmentBytes), name, "set the alignment");
  // Attributes of more than 64 KiB (long lists of class names) need the format of HDF5 1.8.
  check_hdf5(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_LATEST), name, "set the format");
  return {owned(H5Fcreate(name.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()), H5Fclose, name, "create"), name};
}

bool Hdf5File::has(const std::string& path) const {
  const LibraryLock lock;
  return check_hdf5(H5Lexists(handle_.id(), path.c_str(), H5P_DEFAULT), name_, "look for " + path) > 0;
}

void Hdf5File::create_group(const std::string& path) {
  const LibraryLock lock;
  owned(H5Gcreate2(handle_.id(), path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, name_,
        "create the group " + path);
}

std::vector<std::string> Hdf5File::names_in(const std::string& group) const {
  const LibraryLock lock;
  const Hdf5Handle opened =
      owned(H5Gopen2(handle_.id(), group.c_str(), H5P_DEFAULT), H5Gclose, name_, "open the group " + group);
  std::vector<std::string> names;
  check_hdf5(H5Literate(
                 opened.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
                 [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
                   static_cast<std::vector<std::string>*>(list)->emplace_back(name);
                   return 0;
                 },
                 &names),
             name_, "list the group " + group);
  std::sort(names.begin(), names.end());
  return names;
}

Hdf5Dataset Hdf5File::open_dataset(const std::string& path) const {
  const LibraryLock lock;
  const std::string name = fmt::format("{}:{}", name_, path);
  return {owned(H5Dopen2(handle_.id(), path.c_str(), H5P_DEFAULT), H5Dclose, name, "open"), name};
}

Hdf5Dataset Hdf5File::create_dataset(const std::string& path, ElementType type, std::span<const int64_t> shape,
                                     Hdf5Storage storage) {
  const LibraryLock lock;
  const std::string name = fmt::format("{}:{}", name_, path);
  std::vector<hsize_t> extents = extents_of(shape);
  const Hdf5Handle space = owned(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose,
                                 name, "describe the extents");
  const Hdf5Handle properties = owned(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name, "prepare creating");
  check_hdf5(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER), name, "switch off filling");
  const hsize_t row_bytes = std::max<hsize_t>(
      1,
      std::accumulate(extents.begin() + 1, extents.end(), static_cast<hsize_t>(size_bytes(type)), std::multiplies<>()));
  if (storage == Hdf5Storage::kContiguous) {
    check_hdf5(H5Pset_layout(properties.id(), H5D_CONTIGUOUS), name, "set the layout");
    check_hdf5(H5Pset_alloc_time(properties.id(), H5D_ALLOC_TIME_EARLY), name, "allocate early");
  } else if (extents[0] > 0) {
    extents[0] = std::clamp<hsize_t>(kChunkBytes / row_bytes, 1, extents[0]);
    check_hdf5(H5Pset_chunk(properties.id(), static_cast<int>(extents.size()), extents.data()), name, "set the chunks");
    check_hdf5(H5Pset_deflate(properties.id(), kDeflateLevel), name, "set the compression");
  }
  return {owned(H5Dcreate2(handle_.id(), path.c_str(), native_type(type), space.id(), H5P_DEFAULT, properties.id(),
                           H5P_DEFAULT),
                H5Dclose, name, "create"),
          name};
}

void Hdf5File::close() {
  const LibraryLock lock;
  check_hdf5(H5Fflush(handle_.id(), H5F_SCOPE_GLOBAL), name_, "write");
  handle_.close();
}

}  // namespace tutti::data
