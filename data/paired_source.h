// Rows whose inputs stand in one file and whose targets in another.
#ifndef TUTTI_DATA_PAIRED_SOURCE_H
#define TUTTI_DATA_PAIRED_SOURCE_H

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "data/data_error.h"
#include "data/field.h"
#include "data/row_source.h"

namespace tutti::data {

/// One input and one target field. A File has name(), field(), row_count(), read(count, bytes) and rewind().
template <typename File>
class PairedSource : public RowSource {
 public:
  /// Throws DataError, with both counts, unless both files hold as many rows; `contents` says what they hold ("images
  /// and labels").
  PairedSource(File input, File target, const char* contents)
      : input_(std::move(input)), target_(std::move(target)), inputs_{input_.field()}, targets_{target_.field()} {
    if (input_.row_count() != target_.row_count()) {
      throw DataError(fmt::format("{} holds {} rows, {} holds {}: expected {} of the same rows", input_.name(),
                                  input_.row_count(), target_.name(), target_.row_count(), contents));
    }
  }

  const std::vector<Field>& inputs() const override { return inputs_; }
  const std::vector<Field>& targets() const override { return targets_; }
  int64_t row_count() const override { return input_.row_count(); }
  void read(int64_t count, RowBytes& rows) override {
    rows.resize(2);
    input_.read(count, rows[0]);
    target_.read(count, rows[1]);
  }
  void rewind() override {
    input_.rewind();
    target_.rewind();
  }

 protected:
  File input_, target_;
  std::vector<Field> inputs_, targets_;
};

}  // namespace tutti::data

#endif
