// Operands from arguments.
#include "src/program/operand.h"

#include "src/graph/operator_call.h"

namespace tutti::program {

Operand::Operand(const NodeContext& context, size_t position) {
  const graph::Argument& argument = context.node().arguments.at(position);
  if (argument.kind == graph::Argument::Kind::kConstant) {
    number_ = graph::number_tensor(context.constant(position).toScalar());
    return;
  }
  id_ = context.value(position);
  target_ = context.target(position);
  value_ = context.graph().values[id_];
  broadcast_ = Broadcast(value_.shape, context.shape(context.output()));
}

int64_t Operand::scratch_bytes(const RunSize& size) const {
  const bool is_summed_and_copied = target_.bound && broadcast_.repeats();
  return is_summed_and_copied ? value_bytes(value_, size.rows, size.element_bytes) : 0;
}

bool is_operand(const graph::Node& node, size_t position) {
  const graph::Argument& argument = node.arguments.at(position);
  if (argument.kind == graph::Argument::Kind::kConstant) return argument.constant.isScalar();
  return argument.kind == graph::Argument::Kind::kValue && argument.ids.front() != graph::kNoValue;
}

}  // namespace tutti::program
