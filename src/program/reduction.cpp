// One instruction for all reductions to one result, and the table of what they compute.
#include "src/program/reduction.h"

#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>

#include "src/graph/operator_call.h"
#include "src/program/run_shape.h"
#include "src/program/value_type.h"

namespace tutti::program {
namespace {

using at::Tensor;

/// What a reduction is told besides tensors.
struct Settings {
  std::vector<int64_t> dimensions;  ///< ascending
  double number = 0;                ///< order of a norm, correction of a variance
  std::optional<at::Scalar> correction() const { return at::Scalar(number); }
};

/// `gradient` and `output` have size 1 where the input was reduced.
struct BackwardInput {
  const Tensor &gradient, &input, &output;
  at::IntArrayRef shape;  ///< of the input
  int64_t count;          ///< input values per result
};

struct ReductionFunction {
  enum Reads { kNothing = 0, kInput = 1, kOutput = 2, kBoth = 3 };
  std::string_view target;
  Reads reads;
  Tensor (*forward)(const Tensor& input, const Settings& settings);  ///< keeps the reduced dimensions
  Tensor (*backward)(const BackwardInput& from, const Settings& settings);
  int64_t temporaries = 0;  ///< tensors of the input's size that backward holds at once besides its result
};

Tensor repeated(const Tensor& gradient, at::IntArrayRef shape) { return gradient.expand(shape).contiguous(); }

Tensor extreme_backward(const BackwardInput& from, const Settings& settings) {
  const Tensor is_extreme = at::eq(from.input, from.output);
  const Tensor share = at::div(from.gradient, at::sum(is_extreme, settings.dimensions, /*keepdim=*/true));
  return at::mul(share, is_extreme);
}

Tensor norm_backward(const BackwardInput& from, const Settings& settings) {
  if (settings.number == 1) return at::sgn(from.input).mul_(from.gradient);
  return at::mul(from.input, at::div(from.gradient, from.output).masked_fill_(from.output.eq(0), 0));
}

/// The factor is the derivative of the result by the variance.
Tensor variance_backward(const Tensor& factor, const BackwardInput& from, const Settings& settings) {
  const double freedom = static_cast<double>(from.count) - settings.number;
  return at::sub(from.input, from.input.mean(settings.dimensions, /*keepdim=*/true)).mul_(at::mul(factor, 2 / freedom));
}

constexpr std::array kFunctions{
    ReductionFunction{"aten::sum", ReductionFunction::kNothing,
                      [](const Tensor& x, const Settings& s) { return at::sum(x, s.dimensions, /*keepdim=*/true); },
                      [](const BackwardInput& from, const Settings&) { return repeated(from.gradient, from.shape); }},
    ReductionFunction{"aten::mean", ReductionFunction::kNothing,
                      [](const Tensor& x, const Settings& s) { return at::mean(x, s.dimensions, /*keepdim=*/true); },
                      [](const BackwardInput& from, const Settings&) {
                        return repeated(at::div(from.gradient, from.count), from.shape);
                      }},
    ReductionFunction{"aten::amax", ReductionFunction::kBoth,
                      [](const Tensor& x, const Settings& s) { return at::amax(x, s.dimensions, /*keepdim=*/true); },
                      extreme_backward, /*temporaries=*/1},
    ReductionFunction{"aten::amin", ReductionFunction::kBoth,
                      [](const Tensor& x, const Settings& s) { return at::amin(x, s.dimensions, /*keepdim=*/true); },
                      extreme_backward, /*temporaries=*/1},
    ReductionFunction{
        "aten::logsumexp", ReductionFunction::kBoth,
        [](const Tensor& x, const Settings& s) { return at::logsumexp(x, s.dimensions, /*keepdim=*/true); },
        [](const BackwardInput& from, const Settings&) {
          return at::sub(from.input, from.output).exp_().mul_(from.gradient);
        }},
    ReductionFunction{"aten::linalg_vector_norm", ReductionFunction::kBoth,
                      [](const Tensor& x, const Settings& s) {
                        return at::linalg_vector_norm(x, s.number, s.dimensions, /*keepdim=*/true);
                      },
                      norm_backward},
    ReductionFunction{
        "aten::var", ReductionFunction::kInput,
        [](const Tensor& x, const Settings& s) { return at::var(x, s.dimensions, s.correction(), /*keepdim=*/true); },
        [](const BackwardInput& from, const Settings& s) { return variance_backward(from.gradient, from, s); }},
    ReductionFunction{
        "aten::std", ReductionFunction::kBoth,
        [](const Tensor& x, const Settings& s) { return at::std(x, s.dimensions, s.correction(), /*keepdim=*/true); },
        [](const BackwardInput& from, const Settings& s) {
          const Tensor factor = at::div(from.gradient, from.output).mul_(0.5).masked_fill_(from.output.eq(0), 0);
          return variance_backward(factor, from, s);
        }},
};

const ReductionFunction& function_of(const graph::Node& node) {
  return *std::find_if(kFunctions.begin(), kFunctions.end(),
                       [&](const ReductionFunction& function) { return function.target == node.target; });
}

/// The arguments by their names in the schema; null where the operator has no such argument.
class NamedArguments {
 public:
  explicit NamedArguments(const graph::Node& node) : node_(node), schema_(graph::find_operator(node).schema()) {}

  const c10::IValue* find(const std::string& name) const {
    const std::optional<int> position = schema_.argumentIndexWithName(name);
    return position ? &node_.arguments.at(static_cast<size_t>(*position)).constant : nullptr;
  }
  bool has(const std::string& name) const { return find(name) != nullptr && !find(name)->isNone(); }

 private:
  const graph::Node& node_;
  const c10::FunctionSchema& schema_;
};

/// No dimensions stand for all.
std::vector<int64_t> reduced_dimensions(const NamedArguments& arguments, int64_t rank) {
  std::vector<int64_t> dimensions;
  if (arguments.has("dim")) {
    const c10::IValue& given = *arguments.find("dim");
    dimensions = given.isInt() ? std::vector<int64_t>{given.toInt()} : given.toIntVector();
  }
  if (dimensions.empty()) {
    dimensions.resize(static_cast<size_t>(rank));
    std::iota(dimensions.begin(), dimensions.end(), 0);
  }
  at::maybe_wrap_dims(dimensions, rank);
  std::sort(dimensions.begin(), dimensions.end());
  return dimensions;
}

double number_of(const NamedArguments& arguments) {
  if (arguments.has("ord")) return arguments.find("ord")->toScalar().toDouble();
  if (arguments.has("correction")) return arguments.find("correction")->toScalar().toDouble();
  const c10::IValue* unbiased = arguments.find("unbiased");
  return unbiased == nullptr || unbiased->toBool() ? 1 : 0;
}

class Reduction final : public Instruction {
 public:
  explicit Reduction(const NodeContext& context)
      : function_(function_of(context.node())),
        input_(context.value(0)),
        output_(context.output()),
        target_(context.target(0)),
        shape_(context.graph(), input_),
        input_value_(context.graph().values[input_]) {
    const NamedArguments arguments(context.node());
    settings_ = {reduced_dimensions(arguments, context.rank(input_)), number_of(arguments)};
    const c10::IValue* keeps = arguments.find("keepdim");
    keeps_dimensions_ = keeps != nullptr && keeps->toBool();
  }

  void forward(Frame& frame) const override {
    const Tensor result = function_.forward(frame.values[input_], settings_);
    frame.values[output_] = keeps_dimensions_ ? result : result.squeeze(settings_.dimensions);
  }

  void backward(Frame& frame) const override {
    const at::DimVector shape = shape_(frame);
    int64_t count = 1;
    for (const int64_t dimension : settings_.dimensions) count *= shape[static_cast<size_t>(dimension)];
    const Tensor gradient = restored(frame.gradients[output_]);
    const Tensor output = reads(ReductionFunction::kOutput) ? restored(frame.values[output_]) : Tensor();
    deliver(frame, target_, function_.backward({gradient, frame.values[input_], output, shape, count}, settings_));
  }

  std::string name() const override { return std::string(function_.target.substr(function_.target.find("::") + 2)); }

  std::vector<graph::ValueId> kept_values() const override {
    std::vector<graph::ValueId> kept;
    if (reads(ReductionFunction::kInput)) kept.push_back(input_);
    if (reads(ReductionFunction::kOutput)) kept.push_back(output_);
    return kept;
  }

  int64_t scratch_bytes(const RunSize& size, Pass pass) const override {
    if (pass == Pass::kForward) return 0;
    return (function_.temporaries + (target_.bound ? 1 : 0)) * value_bytes(input_value_, size.rows, size.element_bytes);
  }

 private:
  bool reads(ReductionFunction::Reads what) const { return (function_.reads & what) != 0; }

  Tensor restored(Tensor reduced) const {
    if (keeps_dimensions_) return reduced;
    for (const int64_t dimension : settings_.dimensions) reduced = reduced.unsqueeze(dimension);
    return reduced;
  }

  const ReductionFunction& function_;
  graph::ValueId input_, output_;
  GradientTarget target_;
  RunShape shape_;
  graph::Value input_value_;
  Settings settings_;
  bool keeps_dimensions_ = false;
};

}  // namespace

std::unique_ptr<Instruction> make_reduction(const NodeContext& context) { return std::make_unique<Reduction>(context); }

bool reduction_has_instruction(const graph::Graph& graph, const graph::Node& node) {
  const auto is_constant = [](const graph::Argument& argument) {
    return argument.kind == graph::Argument::Kind::kConstant;
  };
  if (node.arguments.front().kind != graph::Argument::Kind::kValue ||
      !std::all_of(node.arguments.begin() + 1, node.arguments.end(), is_constant)) {
    return false;
  }
  const NamedArguments arguments(node);
  const bool has_known_order = !arguments.has("ord") || number_of(arguments) == 1 || number_of(arguments) == 2;
  const bool keeps = !arguments.has("dtype") || keeps_type(graph, node, node.arguments.size() - 1);
  return c10::isFloatingType(graph.values[node.outputs.front()].type) && has_known_order && keeps &&
         has_one_real_type(graph, node);
}

}  // namespace tutti::program
