// The graph's signature, size and cost.
#include "src/graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace tutti::graph {
namespace {

void append_constant(std::string& text, const c10::IValue& value) {
  if (value.isNone()) {
    text += 'n';
  } else if (value.isInt()) {
    text += fmt::format("i{}", value.toInt());
  } else if (value.isDouble()) {
    text += fmt::format("f{:a}", value.toDouble());
  } else if (value.isBool()) {
    text += value.toBool() ? "b1" : "b0";
  } else if (value.isString()) {
    text += fmt::format("s{}:{}", value.toStringRef().size(), value.toStringRef());
  } else if (value.isDevice()) {
    text += fmt::format("d{}", value.toDevice().str());
  } else if (value.isList()) {
    text += '[';
    for (const c10::IValue& element : value.toListRef()) {
      append_constant(text, element);
      text += ',';
    }
    text += ']';
  } else {
    throw GraphError(
        "a node's constant argument: expected none, a number, a truth value, a string, a device or a list "
        "of these, found " +
        value.tagKind());
  }
}

void append_node(std::string& text, const Node& node) {
  text += fmt::format("\n{}.{}(", node.target, node.overload);
  for (const Argument& argument : node.arguments) {
    if (argument.kind == Argument::Kind::kConstant) {
      append_constant(text, argument.constant);
    } else {
      text += fmt::format("{}{}", argument.kind == Argument::Kind::kValue ? "v" : "vs", fmt::join(argument.ids, "+"));
      if (argument.kind == Argument::Kind::kNumbers) append_constant(text, argument.constant);
    }
    text += ';';
  }
  text += fmt::format(")>{}", fmt::join(node.outputs, ","));
}

/// The bytes themselves: a hash could make two different constants look equal.
void append_tensor(std::string& text, const Constant& constant) {
  const at::Tensor tensor = constant.tensor.contiguous();
  text += fmt::format("\nconstant {} {}:", constant.value, tensor.nbytes());
  text.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
}

/// The product of the sizes, for a batch of one.
double elements(const std::vector<int64_t>& shape) {
  double product = 1;
  for (int64_t size : shape) product *= static_cast<double>(size_at(size, 1));
  return product;
}

class FlopCounter {
 public:
  explicit FlopCounter(const Graph& graph) : graph_(graph) {}

  double operator()(const Node& node) const {
    if (node.outputs.empty()) return 0;
    const std::string_view name = std::string_view(node.target).substr(node.target.find("::") + 2);
    const std::vector<int64_t>& result = graph_.values.at(static_cast<size_t>(node.outputs.front())).shape;
    if (name == "linear") return 2 * elements(result) * last(shape(node, 1));
    if (name.starts_with("conv_transpose")) return transposed_convolution(node);
    if (name == "convolution") {
      return node.arguments.at(6).constant.toBool() ? transposed_convolution(node) : convolution(node, result);
    }
    if (name.starts_with("conv1d") || name.starts_with("conv2d") || name.starts_with("conv3d")) {
      return convolution(node, result);
    }
    if (name == "matmul" || name == "mm" || name == "bmm" || name == "mv" || name == "dot") {
      return 2 * elements(result) * last(shape(node, 0));
    }
    if (name == "addmm" || name == "baddbmm" || name == "addmv") return 2 * elements(result) * last(shape(node, 1));
    return 0;
  }

 private:
  const std::vector<int64_t>& shape(const Node& node, size_t argument) const {
    return graph_.values.at(static_cast<size_t>(node.arguments.at(argument).ids.at(0))).shape;
  }
  static double last(const std::vector<int64_t>& shape) {
    return shape.empty() ? 1 : static_cast<double>(size_at(shape.back(), 1));
  }
  /// Every result reads one filter: [out, in / groups, kernel...].
  double convolution(const Node& node, const std::vector<int64_t>& result) const {
    const std::vector<int64_t>& weight = shape(node, 1);
    return 2 * elements(result) * elements(weight) / static_cast<double>(weight.at(0));
  }
  /// Every input is spread by one filter: [in, out / groups, kernel...].
  double transposed_convolution(const Node& node) const {
    const std::vector<int64_t>& weight = shape(node, 1);
    return 2 * elements(shape(node, 0)) * elements(weight) / static_cast<double>(weight.at(0));
  }

  const Graph& graph_;
};

}  // namespace

std::string operator_name(const Node& node) {
  return node.overload.empty() ? node.target : node.target + "." + node.overload;
}

std::string described(const Node& node) {
  return node.label.empty() ? operator_name(node) : fmt::format("{} ({})", node.label, operator_name(node));
}

std::string Graph::signature() const {
  std::string text = fixed_batch ? fmt::format("batch {}\n", *fixed_batch) : "";
  for (const Value& value : values) {
    text +=
        fmt::format("{}{}[{}];", static_cast<int>(value.kind), c10::toString(value.type), fmt::join(value.shape, ","));
  }
  text += fmt::format("\ninputs {}\noutputs {}\nparameters", fmt::join(inputs, ","), fmt::join(outputs, ","));
  for (const Parameter& parameter : parameters) {
    text += fmt::format(" {}{}", parameter.value, parameter.trainable ? "" : "!");
  }
  text += "\nbuffers";
  for (const Buffer& buffer : buffers) text += fmt::format(" {}{}", buffer.value, buffer.persistent ? "" : "!");
  for (const Constant& constant : constants) append_tensor(text, constant);
  for (const Node& node : nodes) append_node(text, node);
  return text;
}

int64_t Graph::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters) {
    int64_t product = 1;
    for (int64_t size : values.at(static_cast<size_t>(parameter.value)).shape) product *= size;
    count += product;
  }
  return count;
}

double Graph::forward_flops_per_sample() const {
  const FlopCounter flops(*this);
  double sum = 0;
  for (const Node& node : nodes) sum += flops(node);
  return sum;
}

}  // namespace tutti::graph
