// Rows that an importer reads from files of another format.
#ifndef TUTTI_DATA_ROW_SOURCE_H
#define TUTTI_DATA_ROW_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/field.h"

namespace tutti::data {

/// The bytes of several rows, one entry per field: the inputs, then the targets.
using RowBytes = std::vector<std::vector<std::byte>>;

/// Rows read from front to back, as often as wanted, without holding more than what one read() asks for.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const std::vector<Field>& inputs() const = 0;
  virtual const std::vector<Field>& targets() const = 0;
  virtual int64_t row_count() const = 0;

  /// Replaces `rows` by the next `count` rows; no more are asked for than are left. Throws DataError.
  virtual void read(int64_t count, RowBytes& rows) = 0;
  virtual void rewind() = 0;
};

}  // namespace tutti::data

#endif
