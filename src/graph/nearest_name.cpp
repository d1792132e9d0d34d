// The nearest known name to a misspelt one, for error messages.
#include "src/graph/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tutti::graph {
namespace {

/// Optimal string alignment distance, row by row.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (from[i - 1] == to[j - 1] ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    std::swap(last, row);
  }
  return last[to.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty()) return {};
  return *std::ranges::min_element(known, {}, [&](const std::string& other) { return edit_distance(name, other); });
}

}  // namespace tutti::graph
