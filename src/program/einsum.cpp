// aten::einsum; the gradient of an operand is the einsum of the result's gradient and the other operands.
#include "src/program/einsum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "src/program/value_type.h"

namespace tutti::program {
namespace {

struct Equation {
  std::vector<std::string> operands;
  std::string result;

  std::string text() const {
    std::string joined;
    for (const std::string& operand : operands) joined += (joined.empty() ? "" : ",") + operand;
    return joined + "->" + result;
  }

  /// With the result and `operand` exchanged.
  Equation backward(size_t operand) const {
    Equation exchanged = *this;
    std::swap(exchanged.operands[operand], exchanged.result);
    return exchanged;
  }
};

/// Without an arrow the result has the subscripts that occur once, in alphabetical order.
Equation parse(std::string text) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  Equation equation;
  equation.operands.emplace_back();
  for (const char letter : text.substr(0, arrow)) {
    if (letter == ',') {
      equation.operands.emplace_back();
    } else {
      equation.operands.back() += letter;
    }
  }
  if (arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    return equation;
  }
  std::map<char, int> counts;
  for (const std::string& operand : equation.operands) {
    for (const char letter : operand) ++counts[letter];
  }
  for (const auto& [letter, count] : counts) {
    if (count == 1) equation.result += letter;
  }
  return equation;
}

bool each_once(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return std::adjacent_find(letters.begin(), letters.end()) == letters.end();
}

class Einsum final : public Instruction {
 public:
  explicit Einsum(const NodeContext& context)
      : equation_(parse(context.text(0))),
        inputs_(context.values(1)),
        targets_(context.targets(1)),
        output_(context.output()) {
    for (const graph::ValueId input : inputs_) values_.push_back(context.graph().values[input]);
    values_.push_back(context.graph().values[output_]);
  }

  void forward(Frame& frame) const override {
    frame.values[output_] = at::einsum(equation_.text(), operands(frame)).contiguous();
  }

  void backward(Frame& frame) const override {
    const std::vector<at::Tensor> inputs = operands(frame);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!targets_[i].needed()) continue;
      std::vector<at::Tensor> factors = inputs;
      factors[i] = frame.gradients[output_];
      deliver(frame, targets_[i], at::einsum(equation_.backward(i).text(), factors).contiguous());
    }
  }

  std::string name() const override { return "einsum"; }
  std::vector<graph::ValueId> kept_values() const override { return inputs_; }

  /// Operands and result are permuted for a batched product.
  int64_t scratch_bytes(const RunSize& size, Pass) const override {
    int64_t bytes = 0;
    for (const graph::Value& value : values_) bytes += value_bytes(value, size.rows, size.element_bytes);
    return bytes;
  }

 private:
  std::vector<at::Tensor> operands(const Frame& frame) const {
    std::vector<at::Tensor> tensors;
    for (const graph::ValueId input : inputs_) tensors.push_back(frame.values[input]);
    return tensors;
  }

  Equation equation_;
  std::vector<graph::ValueId> inputs_;
  std::vector<GradientTarget> targets_;
  graph::ValueId output_;
  std::vector<graph::Value> values_;  ///< inputs, then the result
};

/// True where each subscript has the same size everywhere.
bool has_one_size_each(const graph::Graph& graph, const Equation& equation, const std::vector<graph::ValueId>& ids) {
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<int64_t>& shape = graph.values[ids[i]].shape;
    if (shape.size() != equation.operands[i].size()) return false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (sizes.try_emplace(equation.operands[i][d], shape[d]).first->second != shape[d]) return false;
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<Instruction> make_einsum(const NodeContext& context) { return std::make_unique<Einsum>(context); }

bool einsum_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  if (!node.arguments[0].constant.isString() || node.arguments[1].kind != graph::Argument::Kind::kValues) return false;
  const std::string text = node.arguments[0].constant.toStringRef();
  if (text.find('.') != std::string::npos || !has_one_real_type(graph, node)) return false;
  const Equation equation = parse(text);
  if (equation.operands.size() != node.arguments[1].ids.size() || !each_once(equation.result)) return false;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    std::string elsewhere = equation.result;
    for (size_t j = 0; j < equation.operands.size(); ++j) {
      if (j != i) elsewhere += equation.operands[j];
    }
    const bool occurs = equation.operands[i].find_first_not_of(elsewhere) == std::string::npos;
    if (!occurs || !each_once(equation.operands[i])) return false;
  }
  return has_one_size_each(graph, equation, node.arguments[1].ids);
}

}  // namespace tutti::program
