// Rows from shapes.
#include "src/program/row_layout.h"

#include <algorithm>

#include "src/graph/graph.h"

namespace tutti::program {

RowLayout::RowLayout(const std::vector<int64_t>& shape) {
  const auto found = std::find_if(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
  dimension_ = found == shape.end() ? -1 : found - shape.begin();
  if (found != shape.end()) places_ = *found / graph::kBatch;
}

RowLayout::Extent RowLayout::extent(at::IntArrayRef sizes) const {
  Extent extent;
  for (int64_t d = 0; d < std::ssize(sizes); ++d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    if (d < dimension_) {
      extent.before *= size;
    } else if (d == dimension_) {
      extent.rows = size / places_;
      extent.after = places_;
    } else {
      extent.after *= size;
    }
  }
  return extent;
}

}  // namespace tutti::program
