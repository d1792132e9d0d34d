// Products by at::matmul; a gradient that is summed over a batch is one product of folded matrices where it can be.
#include "src/program/product.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/program/operand.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using at::Tensor;
using Shape = std::vector<int64_t>;

/// A stack of matrices as one: [..., n, m] to [n, ... * m].
Tensor beside_each_other(const Tensor& stack) { return stack.movedim(-2, 0).reshape({stack.size(-2), -1}); }
/// [..., n, m] to [... * n, m].
Tensor below_each_other(const Tensor& stack) { return stack.reshape({-1, stack.size(-1)}); }

/// One factor of a product, and its gradient.
struct Factor {
  graph::ValueId id = graph::kNoValue;
  GradientTarget target;
  bool is_vector = false;
  bool is_single = false;  ///< one matrix (or vector)
  Broadcast broadcast;     ///< of a stack of matrices to that of the product
  graph::Value value;

  Factor(const NodeContext& context, size_t position)
      : id(context.value(position)), target(context.target(position)), value(context.graph().values[id]) {
    is_vector = value.shape.size() == 1;
    is_single = value.shape.size() <= 2;
  }
};

/// left × right: vectors are matrices of one row (left) or one column (right), stacks of matrices are broadcast.
class Product final : public Instruction {
 public:
  /// The factors are the node's arguments `first` and `first` + 1.
  Product(const NodeContext& context, size_t first)
      : left_(context, first),
        right_(context, first + 1),
        output_(context.output()),
        name_(context.node().target.substr(context.node().target.find("::") + 2)) {
    Shape stack = context.shape(output_);
    if (!left_.is_vector) stack.pop_back();
    if (!right_.is_vector) stack.pop_back();
    for (Factor* factor : {&left_, &right_}) {
      if (factor->is_single) continue;
      Shape matrices = stack;
      matrices.insert(matrices.end(), factor->value.shape.end() - 2, factor->value.shape.end());
      factor->broadcast = Broadcast(factor->value.shape, matrices);
    }
    if (first == 0) return;
    added_.emplace(context, 0);
    beta_ = context.constant(first + 2).toScalar();
    alpha_ = context.constant(first + 3).toScalar();
  }

  void forward(Frame& frame) const override {
    const Tensor &left = frame.values[left_.id], &right = frame.values[right_.id];
    frame.values[output_] = added_ ? with_added(added_->in(frame), left, right) : at::matmul(left, right);
  }

  void backward(Frame& frame) const override {
    const Tensor whole = frame.gradients[output_];
    if (added_ && added_->needs_gradient()) {
      added_->deliver_sum(frame, beta_.equal(1) ? whole : at::mul(whole, beta_));
    }
    if (!left_.target.needed() && !right_.target.needed()) return;
    Tensor gradient = alpha_.equal(1) ? whole : at::mul(whole, alpha_);  // [..., n, m]
    if (left_.is_vector) gradient = gradient.unsqueeze(right_.is_vector ? -1 : -2);
    if (right_.is_vector) gradient = gradient.unsqueeze(-1);
    if (left_.target.needed()) deliver_left(frame, gradient);
    if (right_.target.needed()) deliver_right(frame, gradient);
  }

  std::string name() const override { return name_; }

  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept;
    if (right_.target.needed()) kept.push_back(left_.id);
    if (left_.target.needed()) kept.push_back(right_.id);
    return kept;
  }

  /// at::matmul copies stacks of more than one dimension that are not contiguous.
  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    const auto bytes = [&](const Factor& factor) {
      return factor.is_single ? 0 : value_bytes(factor.value, size.rows, size.element_bytes);
    };
    return pass == Pass::kForward ? bytes(left_) + bytes(right_) : std::max(bytes(left_), bytes(right_));
  }

 private:
  Tensor with_added(const Tensor& added, const Tensor& left, const Tensor& right) const {
    if (left_.value.shape.size() == 3) return at::baddbmm(added, left, right, beta_, alpha_);
    return right_.is_vector ? at::addmv(added, left, right, beta_, alpha_)
                            : at::addmm(added, left, right, beta_, alpha_);
  }

  /// gradient × right transposed
  void deliver_left(Frame& frame, const Tensor& gradient) const {
    Tensor right = frame.values[right_.id];  // [..., k, m]
    if (right_.is_vector) right = right.unsqueeze(-1);
    if (!left_.is_single) {
      deliver(frame, left_.target, left_.broadcast.sum(at::matmul(gradient, right.transpose(-2, -1))));
    } else if (left_.is_vector) {
      deliver(frame, left_.target, at::mm(beside_each_other(gradient), beside_each_other(right).t()).squeeze(0));
    } else {
      deliver_product(frame, left_.target, beside_each_other(gradient), beside_each_other(right).t());
    }
  }

  /// left transposed × gradient
  void deliver_right(Frame& frame, const Tensor& gradient) const {
    Tensor left = frame.values[left_.id];  // [..., n, k]
    if (left_.is_vector) left = left.unsqueeze(0);
    if (!right_.is_single) {
      deliver(frame, right_.target, right_.broadcast.sum(at::matmul(left.transpose(-2, -1), gradient)));
    } else if (right_.is_vector) {
      deliver(frame, right_.target, at::mm(below_each_other(left).t(), below_each_other(gradient)).squeeze(-1));
    } else {
      deliver_product(frame, right_.target, below_each_other(left).t(), below_each_other(gradient));
    }
  }

  Factor left_, right_;
  graph::ValueId output_;
  std::optional<Operand> added_;
  at::Scalar beta_ = 1, alpha_ = 1;
  std::string name_;
};

}  // namespace

std::unique_ptr<Instruction> make_product(const NodeContext& context) {
  return std::make_unique<Product>(context, /*first=*/0);
}

std::unique_ptr<Instruction> make_added_product(const NodeContext& context) {
  return std::make_unique<Product>(context, /*first=*/1);
}

bool product_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const bool are_operands = std::all_of(node.arguments.begin(), node.arguments.end(), [](const auto& argument) {
    return argument.kind == graph::Argument::Kind::kValue ||
           (argument.kind == graph::Argument::Kind::kConstant && argument.constant.isScalar());
  });
  return are_operands && c10::isFloatingType(graph.values[node.outputs.front()].type) && has_one_real_type(graph, node);
}

}  // namespace tutti::program
