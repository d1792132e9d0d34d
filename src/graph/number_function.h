// Functions of numbers in exported graphs: Python's operators on the batch size and what is computed from it.
#ifndef TUTTI_SRC_GRAPH_NUMBER_FUNCTION_H
#define TUTTI_SRC_GRAPH_NUMBER_FUNCTION_H

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace tutti::graph {

/// A function of one to three numbers (int, float or bool), with Python's meaning: "_operator::floordiv" rounds down,
/// "_operator::truediv" gives a float, "torch::sym_ite" chooses.
struct NumberFunction {
  std::string_view target;
  int64_t argument_count = 0;
  /// Throws std::domain_error where the function has no value (division by zero) or the value is beyond 64 bits.
  c10::IValue (*compute)(std::span<const c10::IValue> arguments) = nullptr;

  /// Null where there is no function of that name.
  static const NumberFunction* find(std::string_view target);
};

}  // namespace tutti::graph

#endif
