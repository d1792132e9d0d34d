// Reads the sizes of the program's inputs.
#include "src/graph/batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "src/graph/graph.h"

namespace tutti::graph {
namespace {

constexpr int64_t kLargestProbe = 1024;

/// The name in "Symbol('s77', positive=True, integer=True)"; empty for any other expression.
std::string symbol_name(const std::string& expression) {
  constexpr std::string_view kBegin = "Symbol('";
  const size_t end = expression.find('\'', kBegin.size());
  const bool is_symbol = expression.starts_with(kBegin) && end != std::string::npos &&
                         expression.find('(', kBegin.size()) == std::string::npos;
  return is_symbol ? expression.substr(kBegin.size(), end - kBegin.size()) : "";
}

class BatchReader {
 public:
  explicit BatchReader(const Pt2Program& program) : program_(program) {}

  Pt2Batch read() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const auto* tensor = std::get_if<Pt2Tensor>(&program_.graph.inputs[i]);
      if (program_.inputs[i].kind != Pt2Input::Kind::kUserInput || tensor == nullptr) continue;
      read_input(tensor->name, program_.graph.input_metas.at(tensor->name).sizes);
    }
    if (fixed_ && is_dynamic_) {
      throw GraphError(
          fmt::format("input '{}' has {} rows at every batch size, while other inputs have a dynamic first "
                      "dimension. Export the model with a dynamic first dimension of every input.",
                      fixed_input_, *fixed_));
    }
    if (fixed_) return {true, {*fixed_}};
    if (!is_dynamic_) throw GraphError("the model has no input. Export a model whose inputs are tensors of rows.");
    return {false, candidates()};
  }

 private:
  void read_input(const std::string& name, const std::vector<Pt2Size>& sizes) {
    if (sizes.empty()) {
      throw GraphError(
          fmt::format("input '{}' is a tensor of no dimensions, which has no rows. Make it a buffer, or "
                      "give each row a value.",
                      name));
    }
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].known && *sizes[d].known < (d == 0 ? 1 : 0)) {
        throw GraphError(fmt::format("input '{}': dimension {} has the size {}", name, d, *sizes[d].known));
      }
      if (d == 0 || sizes[d].known) continue;
      throw GraphError(
          fmt::format("input '{}': dimension {} is dynamic ({}), expected the first alone to be, which is "
                      "the batch. Export the model with a fixed size there.",
                      name, d, sizes[d].expression.substr(0, 100)));
    }
    if (sizes.front().known) {
      read_fixed(name, *sizes.front().known);
    } else {
      read_symbol(name, sizes.front());
    }
  }

  void read_fixed(const std::string& name, int64_t rows) {
    if (fixed_ && *fixed_ != rows) {
      throw GraphError(
          fmt::format("input '{}' has {} rows, input '{}' has {}; the first dimension of every input is "
                      "the batch. Export the model with inputs of equally many rows.",
                      fixed_input_, *fixed_, name, rows));
    }
    fixed_ = rows;
    fixed_input_ = name;
  }

  void read_symbol(const std::string& name, const Pt2Size& size) {
    const std::string symbol = symbol_name(size.expression);
    if (symbol.empty()) {
      throw GraphError(
          fmt::format("input '{}': its first dimension is {}, expected a plain dynamic dimension. Export "
                      "the model with Dim(\"batch\") there.",
                      name, size.expression.substr(0, 100)));
    }
    is_dynamic_ = true;
    if (size.hint) example_ = *size.hint;
    const auto range = program_.ranges.find(symbol);
    if (range == program_.ranges.end()) return;
    least_ = std::max(least_, range->second.least.value_or(least_));
    greatest_ = std::min(greatest_, range->second.greatest.value_or(greatest_));
  }

  /// Small ones first, since some operators have to run; multiples of the example for models that need one.
  std::vector<int64_t> candidates() const {
    const int64_t example = std::clamp<int64_t>(example_, 1, kLargestProbe);
    const int64_t least = std::min(least_, kLargestProbe), greatest = std::clamp<int64_t>(greatest_, 0, kLargestProbe);
    std::vector<int64_t> sizes;
    for (const int64_t size : {int64_t{2}, int64_t{3}, int64_t{4}, int64_t{6}, int64_t{8}, example, 2 * example,
                               3 * example, least, least + 1, greatest, greatest - 1}) {
      const bool is_new = std::find(sizes.begin(), sizes.end(), size) == sizes.end();
      if (size >= std::max<int64_t>(least_, 1) && size <= greatest && is_new) {
        sizes.push_back(size);
      }
    }
    return sizes;
  }

  const Pt2Program& program_;
  std::optional<int64_t> fixed_;
  std::string fixed_input_;
  bool is_dynamic_ = false;
  int64_t example_ = 2, least_ = 0, greatest_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

Pt2Batch batch_of(const Pt2Program& program) { return BatchReader(program).read(); }

}  // namespace tutti::graph
