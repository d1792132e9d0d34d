// Functions of one tensor whose backward reads the input, the output or neither.
#ifndef TUTTI_SRC_PROGRAM_UNARY_H
#define TUTTI_SRC_PROGRAM_UNARY_H

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <span>
#include <string_view>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// A node's arguments after the tensor.
using Constants = std::span<const c10::IValue>;

struct UnaryFunction {
  enum class Reads { kNothing, kInput, kOutput };
  std::string_view target;  ///< "aten::exp"
  Reads reads = Reads::kNothing;
  at::Tensor (*forward)(const at::Tensor& input, Constants constants) = nullptr;
  /// `read` is what `reads` says; not defined where that is nothing.
  at::Tensor (*backward)(const at::Tensor& gradient, const at::Tensor& read, Constants constants) = nullptr;
  int64_t temporaries = 0;  ///< tensors of the input's size that backward holds at once besides its result
};

/// The function of `table` with the node's target, which it has.
std::unique_ptr<Instruction> make_unary(const NodeContext& context, std::span<const UnaryFunction> table);

/// True where all arguments but the first are constants and no type changes.
bool unary_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
