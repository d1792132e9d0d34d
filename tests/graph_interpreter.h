// Runs a graph node by node through ATen's dispatcher: the plainest meaning of a graph, for tests.
#ifndef TUTTI_TESTS_GRAPH_INTERPRETER_H
#define TUTTI_TESTS_GRAPH_INTERPRETER_H

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <vector>

#include "src/graph/graph.h"

namespace tutti::test {

/// The argument as the operator takes it: where torch.export writes a number for a tensor, the tensor.
inline c10::IValue operand(const graph::Argument& argument, const c10::Argument& schema,
                           const std::vector<at::Tensor>& values) {
  if (argument.kind == graph::Argument::Kind::kValue) return values.at(static_cast<size_t>(argument.ids.at(0)));
  if (argument.kind == graph::Argument::Kind::kValues) {
    std::vector<at::Tensor> tensors;
    for (graph::ValueId id : argument.ids) tensors.push_back(values.at(static_cast<size_t>(id)));
    return tensors;
  }
  const bool tensor = schema.type()->kind() == c10::TypeKind::TensorType;
  return tensor && argument.constant.isScalar() ? at::native::wrapped_scalar_tensor(argument.constant.toScalar())
                                                : argument.constant;
}

/// Fills the results in `values`, where inputs, parameters and buffers (which it changes) lie by ValueId.
inline void run_graph(const graph::Graph& graph, std::vector<at::Tensor>& values) {
  for (const graph::Node& node : graph.nodes) {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(node.target.c_str(), node.overload.c_str());
    const std::vector<c10::Argument>& schema = handle.schema().arguments();
    ASSERT_EQ(node.arguments.size(), schema.size()) << node.label << " " << node.target;
    c10::Stack stack;
    for (size_t i = 0; i < schema.size(); ++i) stack.push_back(operand(node.arguments[i], schema[i], values));
    handle.callBoxed(stack);
    ASSERT_EQ(stack.size(), node.outputs.size()) << node.label;
    for (size_t i = 0; i < stack.size(); ++i) values.at(static_cast<size_t>(node.outputs[i])) = stack[i].toTensor();
  }
}

}  // namespace tutti::test

#endif
