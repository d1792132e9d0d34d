// HDF5 files, groups, data sets and attributes: each library call used is wrapped once, checked, and serialised.
#ifndef TUTTI_DATA_HDF5_FILE_H
#define TUTTI_DATA_HDF5_FILE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/data_error.h"
#include "data/field.h"

namespace tutti::data {

/// A failed HDF5 call: names the object, what was tried, and the innermost reason on the library's error stack.
class Hdf5Error : public DataError {
 public:
  using DataError::DataError;
};

/// Returns `result` of an HDF5 call made for `object`, or throws Hdf5Error when it is negative.
int64_t check_hdf5(int64_t result, const std::string& object, const std::string& action);

/// Owns one HDF5 identifier.
class Hdf5Handle {
 public:
  using CloseFunction = int (*)(int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(int64_t id, CloseFunction close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle() { close(); }
  int64_t id() const { return id_; }
  void close() noexcept;

 private:
  int64_t id_ = -1;
  CloseFunction close_ = nullptr;
};

/// What a file, a group and a data set have in common: a name for messages, and attributes.
class Hdf5Object {
 public:
  /// "digits/train-0.h5" or "digits/train-0.h5:/inputs/x".
  const std::string& name() const { return name_; }

  bool has_attribute(const std::string& attribute) const;
  int64_t integer_attribute(const std::string& attribute) const;
  std::vector<double> number_attribute(const std::string& attribute) const;
  std::string text_attribute(const std::string& attribute) const;
  std::vector<std::string> text_list_attribute(const std::string& attribute) const;

  void write_attribute(const std::string& attribute, int64_t value);
  void write_attribute(const std::string& attribute, std::span<const double> values);
  void write_attribute(const std::string& attribute, const std::string& text);
  void write_attribute(const std::string& attribute, const std::vector<std::string>& texts);

 protected:
  Hdf5Object(Hdf5Handle handle, std::string name) : handle_(std::move(handle)), name_(std::move(name)) {}
  Hdf5Handle handle_;
  std::string name_;
};

/// A table of rows: dimension 0 counts the rows.
class Hdf5Dataset : public Hdf5Object {
 public:
  Hdf5Dataset(Hdf5Handle handle, std::string name) : Hdf5Object(std::move(handle), std::move(name)) {}

  /// Throws Hdf5Error for a type that is no ElementType.
  ElementType type() const;
  std::vector<int64_t> shape() const;

  /// Throws Hdf5Error naming a filter (compression) that the library cannot undo.
  void check_filters() const;

  /// Where the rows begin in the file, when they lie there one after the other as this machine stores them; nothing
  /// when they are chunked, compressed, elsewhere, or of another byte order.
  std::optional<int64_t> offset_bytes() const;

  /// Rows [begin, begin + count), as values of type().
  void read_rows(int64_t begin, int64_t count, std::span<std::byte> out) const;
  void write_rows(int64_t begin, int64_t count, std::span<const std::byte> rows);
};

enum class Hdf5Storage { kContiguous, kCompressed };

class Hdf5File : public Hdf5Object {
 public:
  /// Opens for reading, without a file lock: a lock that someone else holds, or a file system without locks, is no
  /// obstacle to a reader of files that are never written in place.
  static Hdf5File open(const std::filesystem::path& path);
  /// Creates a file that must not exist. Data sets of 4,096 bytes and more begin at multiples of 4,096 bytes.
  static Hdf5File create(const std::filesystem::path& path);

  bool has(const std::string& path) const;
  void create_group(const std::string& path);
  /// The names in a group, bytewise sorted.
  std::vector<std::string> names_in(const std::string& group) const;
  Hdf5Dataset open_dataset(const std::string& path) const;
  Hdf5Dataset create_dataset(const std::string& path, ElementType type, std::span<const int64_t> shape,
                             Hdf5Storage storage = Hdf5Storage::kContiguous);
  /// Closes the file; throws where the destructor would hide that buffered bytes could not be written.
  void close();

 private:
  using Hdf5Object::Hdf5Object;
};

}  // namespace tutti::data

#endif
