// To which row of the batch the elements of a tensor belong.
#ifndef TUTTI_SRC_PROGRAM_ROW_LAYOUT_H
#define TUTTI_SRC_PROGRAM_ROW_LAYOUT_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti::program {

/// The dimension along which a tensor's rows lie, each at `places` consecutive places: index i belongs to row
/// i / places. The elements of a row are numbered in the order in which they lie in memory. So a row has the same
/// elements in whatever grain it is. Where the batch is the inner part of a dimension ([time × batch] as one), the
/// elements of one row are not together, and rows are not told apart by shape: the layout is then a fixed one all the
/// same, but depends on the grain's size.
class RowLayout {
 public:
  /// The first dimension is the rows.
  RowLayout() = default;
  /// `shape` has graph::kBatch, or a multiple, where the batch is: the first such dimension holds the rows. Where there
  /// is none, the whole tensor is one row.
  explicit RowLayout(const std::vector<int64_t>& shape);

  bool has_rows() const { return dimension_ >= 0; }
  /// True where each row's elements lie together in a contiguous tensor.
  bool are_together() const { return dimension_ <= 0; }

  /// A tensor [rows, elements of a row] in the layout of a contiguous tensor of `sizes`.
  struct Extent {
    int64_t before = 1;  ///< places before the rows' dimension
    int64_t rows = 1;
    int64_t after = 1;  ///< elements of a row for each of those
    int64_t row_elements() const { return before * after; }
  };
  Extent extent(at::IntArrayRef sizes) const;

 private:
  int64_t dimension_ = 0;  ///< -1: no rows
  int64_t places_ = 1;
};

}  // namespace tutti::program

#endif
