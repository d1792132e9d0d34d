// Every instruction, and the island that runs the same node, against LibTorch's autograd on plain calls.
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "node_graph.h"

namespace tutti::testing {
namespace {

using Engine = program::CompileOptions::Engine;
using Tensors = std::vector<at::Tensor>;

/// One node. All its float tensors are trainable parameters, so every gradient can be read.
struct NodeCase {
  std::string name;
  std::string target, overload;
  Tensors tensors;
  Tensors buffers;
  Tensors constants;
  std::function<std::vector<Argument>(const std::vector<ValueId>&)> arguments;  ///< tensors, buffers, constants
  std::function<at::Tensor(const Tensors&, bool training)> reference;
};

at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }
Argument of(ValueId id) { return Argument::of(id); }

NodeCase unary(std::string name, const std::string& target, const std::vector<Argument>& rest,
               const std::function<at::Tensor(const at::Tensor&)>& reference, at::IntArrayRef shape = {3, 17},
               const std::string& overload = "") {
  return {std::move(name),
          target,
          overload,
          {random(shape)},
          {},
          {},
          [rest](const std::vector<ValueId>& ids) {
            std::vector<Argument> arguments{of(ids[0])};
            arguments.insert(arguments.end(), rest.begin(), rest.end());
            return arguments;
          },
          [reference](const Tensors& t, bool) { return reference(t[0]); }};
}

NodeCase convolution(std::string name, const std::string& target, Tensors tensors, const std::vector<int64_t>& stride,
                     const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation, int64_t groups) {
  const bool has_bias = tensors.size() == 3;
  return {std::move(name),
          target,
          "",
          std::move(tensors),
          {},
          {},
          [=](const std::vector<ValueId>& ids) -> std::vector<Argument> {
            return {of(ids[0]),       of(ids[1]),        has_bias ? of(ids[2]) : Argument::none(),
                    integers(stride), integers(padding), integers(dilation),
                    integer(groups)};
          },
          [=](const Tensors& t, bool) {
            const at::Tensor bias = has_bias ? t[2] : at::Tensor();
            if (target == "aten::conv1d") return at::conv1d(t[0], t[1], bias, stride, padding, dilation, groups);
            if (target == "aten::conv2d") return at::conv2d(t[0], t[1], bias, stride, padding, dilation, groups);
            return at::conv3d(t[0], t[1], bias, stride, padding, dilation, groups);
          }};
}

NodeCase batch_norm(std::string name, at::IntArrayRef shape, bool affine, bool tracked) {
  NodeCase result{std::move(name), "aten::batch_norm", "", {random(shape)}, {}, {}, {}, {}};
  const int64_t channels = shape[1];
  if (affine) result.tensors.insert(result.tensors.end(), {random({channels}), random({channels})});
  if (tracked) result.buffers = {random({channels}), at::rand({channels}, at::kDouble) + 0.5};
  result.arguments = [=](const std::vector<ValueId>& ids) -> std::vector<Argument> {
    const size_t first = affine ? 3 : 1;
    return {of(ids[0]),
            affine ? of(ids[1]) : Argument::none(),
            affine ? of(ids[2]) : Argument::none(),
            tracked ? of(ids[first]) : Argument::none(),
            tracked ? of(ids[first + 1]) : Argument::none(),
            flag(true),
            number(0.3),
            number(1e-3),
            flag(false)};
  };
  result.reference = [=](const Tensors& t, bool training) {
    const size_t first = affine ? 3 : 1;
    const auto at_or_none = [&](bool present, size_t i) { return present ? t[i] : at::Tensor(); };
    return at::batch_norm(t[0], at_or_none(affine, 1), at_or_none(affine, 2), at_or_none(tracked, first),
                          at_or_none(tracked, first + 1), training || !tracked, 0.3, 1e-3, false);
  };
  return result;
}

std::vector<NodeCase> linear_cases() {
  const auto make = [](std::string name, at::IntArrayRef input, bool has_bias) {
    NodeCase result{std::move(name), "aten::linear", "", {random(input), random({5, input.back()})}, {}, {}, {}, {}};
    if (has_bias) result.tensors.push_back(random({5}));
    result.arguments = [=](const std::vector<ValueId>& ids) -> std::vector<Argument> {
      return {of(ids[0]), of(ids[1]), has_bias ? of(ids[2]) : Argument::none()};
    };
    result.reference = [=](const Tensors& t, bool) {
      return at::linear(t[0], t[1], has_bias ? std::optional(t[2]) : std::nullopt);
    };
    return result;
  };
  return {make("linear", {4, 7}, true), make("linear_without_bias", {4, 7}, false),
          make("linear_of_sequences", {2, 3, 7}, true)};
}

std::vector<NodeCase> convolution_cases() {
  std::vector<NodeCase> cases{
      convolution("conv1d", "aten::conv1d", {random({3, 4, 19}), random({6, 2, 3}), random({6})}, {2}, {1}, {2}, 2),
      convolution("conv2d", "aten::conv2d", {random({3, 4, 9, 8}), random({6, 4, 3, 3}), random({6})}, {1, 1}, {1, 1},
                  {1, 1}, 1),
      convolution("conv2d_grouped_strided", "aten::conv2d", {random({2, 4, 9, 8}), random({6, 2, 3, 2})}, {2, 1},
                  {1, 0}, {1, 2}, 2),
      convolution("conv2d_one_number", "aten::conv2d", {random({2, 1, 12, 12}), random({4, 1, 5, 5}), random({4})}, {1},
                  {2}, {1}, 1),
      convolution("conv3d", "aten::conv3d", {random({2, 2, 5, 6, 7}), random({3, 2, 2, 3, 2}), random({3})}, {1, 2, 1},
                  {0, 1, 1}, {1, 1, 1}, 1)};
  cases.push_back({"conv_transpose2d",
                   "aten::conv_transpose2d",
                   "input",
                   {random({2, 4, 5, 6}), random({4, 3, 3, 2}), random({6})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]),       of(ids[1]),       of(ids[2]), integers({2, 3}),
                             integers({1, 0}), integers({1, 2}), integer(2), integers({1, 1})};
                   },
                   [](const Tensors& t, bool) {
                     return at::conv_transpose2d(t[0], t[1], t[2], {2, 3}, {1, 0}, {1, 2}, 2, {1, 1});
                   }});
  return cases;
}

std::vector<NodeCase> pooling_cases() {
  return {
      unary("max_pool1d", "aten::max_pool1d", {integers({3}), integers({2}), integers({1}), integers({1}), flag(false)},
            [](const at::Tensor& x) { return at::max_pool1d(x, {3}, {2}, {1}, {1}, false); }, {2, 3, 11}),
      unary("max_pool2d", "aten::max_pool2d",
            {integers({2, 2}), integers({}), integers({0, 0}), integers({1, 1}), flag(false)},
            [](const at::Tensor& x) {
              return at::max_pool2d(x, {2, 2});
            },
            {2, 3, 8, 9}),
      unary("max_pool2d_overlapping", "aten::max_pool2d",
            {integers({3, 2}), integers({2, 1}), integers({1, 1}), integers({1, 2}), flag(true)},
            [](const at::Tensor& x) {
              return at::max_pool2d(x, {3, 2}, {2, 1}, {1, 1}, {1, 2}, true);
            },
            {2, 3, 8, 9}),
      unary("max_pool2d_of_many_places", "aten::max_pool2d",
            {integers({16, 17}), integers({1}), integers({0}), integers({1}), flag(false)},
            [](const at::Tensor& x) {
              return at::max_pool2d(x, {16, 17}, {1});
            },
            {1, 1, 18, 19}),
      unary("max_pool2d_wide_stride", "aten::max_pool2d",
            {integers({2, 3}), integers({3, 5}), integers({1, 1}), integers({2, 1}), flag(true)},
            [](const at::Tensor& x) {
              return at::max_pool2d(x, {2, 3}, {3, 5}, {1, 1}, {2, 1}, true);
            },
            {2, 3, 10, 23}),
      unary("max_pool3d", "aten::max_pool3d", {integers({2}), integers({2}), integers({0}), integers({1}), flag(true)},
            [](const at::Tensor& x) { return at::max_pool3d(x, {2}, {2}, {0}, {1}, true); }, {2, 2, 5, 6, 7}),
      unary("avg_pool1d", "aten::avg_pool1d", {integers({3}), integers({2}), integers({1}), flag(false), flag(false)},
            [](const at::Tensor& x) { return at::avg_pool1d(x, {3}, {2}, {1}, false, false); }, {2, 3, 11}),
      unary("avg_pool2d", "aten::avg_pool2d",
            {integers({3, 2}), integers({2, 2}), integers({1, 1}), flag(true), flag(true), Argument::none()},
            [](const at::Tensor& x) {
              return at::avg_pool2d(x, {3, 2}, {2, 2}, {1, 1}, true, true);
            },
            {2, 3, 8, 9}),
      unary("avg_pool2d_divisor", "aten::avg_pool2d",
            {integers({2}), integers({}), integers({0}), flag(false), flag(false), integer(3)},
            [](const at::Tensor& x) { return at::avg_pool2d(x, {2}, {}, {0}, false, false, 3); }, {2, 3, 8, 8}),
      unary("avg_pool3d", "aten::avg_pool3d",
            {integers({2, 3, 2}), integers({1, 2, 2}), integers({0, 1, 1}), flag(false), flag(false), Argument::none()},
            [](const at::Tensor& x) {
              return at::avg_pool3d(x, {2, 3, 2}, {1, 2, 2}, {0, 1, 1}, false, false);
            },
            {2, 2, 5, 6, 7}),
      unary("adaptive_avg_pool1d", "aten::adaptive_avg_pool1d", {integers({4})},
            [](const at::Tensor& x) { return at::adaptive_avg_pool1d(x, {4}); }, {2, 3, 11}),
      unary("adaptive_avg_pool2d", "aten::adaptive_avg_pool2d", {integers({3, 2})},
            [](const at::Tensor& x) {
              return at::adaptive_avg_pool2d(x, {3, 2});
            },
            {2, 3, 8, 9}),
      unary("adaptive_avg_pool2d_to_one", "aten::adaptive_avg_pool2d", {integers({1, 1})},
            [](const at::Tensor& x) {
              return at::adaptive_avg_pool2d(x, {1, 1});
            },
            {2, 3, 8, 9}),
      unary("adaptive_avg_pool3d", "aten::adaptive_avg_pool3d", {integers({2, 3, 1})},
            [](const at::Tensor& x) {
              return at::adaptive_avg_pool3d(x, {2, 3, 1});
            },
            {2, 2, 5, 6, 7})};
}

std::vector<NodeCase> normalisation_cases() {
  std::vector<NodeCase> cases{batch_norm("batch_norm1d", {6, 5}, true, true),
                              batch_norm("batch_norm2d", {3, 4, 5, 6}, true, true),
                              batch_norm("batch_norm3d", {3, 2, 3, 4, 5}, true, true),
                              batch_norm("batch_norm_plain", {3, 4, 5, 6}, false, false)};
  cases.push_back({"layer_norm",
                   "aten::layer_norm",
                   "",
                   {random({3, 4, 5}), random({4, 5}), random({4, 5})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]), integers({4, 5}), of(ids[1]), of(ids[2]), number(1e-3), flag(false)};
                   },
                   [](const Tensors& t, bool) {
                     return at::layer_norm(t[0], {4, 5}, t[1], t[2], 1e-3);
                   }});
  cases.push_back(unary("layer_norm_plain", "aten::layer_norm",
                        {integers({5}), Argument::none(), Argument::none(), number(1e-5), flag(false)},
                        [](const at::Tensor& x) { return at::layer_norm(x, {5}); }, {3, 4, 5}));
  cases.push_back({"group_norm",
                   "aten::group_norm",
                   "",
                   {random({3, 6, 5, 4}), random({6}), random({6})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]), integer(3), of(ids[1]), of(ids[2]), number(1e-3), flag(false)};
                   },
                   [](const Tensors& t, bool) { return at::group_norm(t[0], 3, t[1], t[2], 1e-3, false); }});
  return cases;
}

std::vector<NodeCase> activation_cases() {
  return {unary("relu", "aten::relu", {}, [](const at::Tensor& x) { return at::relu(x); }),
          unary("leaky_relu", "aten::leaky_relu", {number(0.1)},
                [](const at::Tensor& x) { return at::leaky_relu(x, 0.1); }),
          unary("gelu", "aten::gelu", {text("none")}, [](const at::Tensor& x) { return at::gelu(x); }),
          unary("gelu_tanh", "aten::gelu", {text("tanh")}, [](const at::Tensor& x) { return at::gelu(x, "tanh"); }),
          unary("silu", "aten::silu", {}, [](const at::Tensor& x) { return at::silu(x); }),
          unary("sigmoid", "aten::sigmoid", {}, [](const at::Tensor& x) { return at::sigmoid(x); }),
          unary("tanh", "aten::tanh", {}, [](const at::Tensor& x) { return at::tanh(x); }),
          unary("softplus", "aten::softplus", {number(2), number(1)},
                [](const at::Tensor& x) { return at::softplus(x, 2, 1); }),
          unary("elu", "aten::elu", {number(0.7), integer(1), integer(1)},
                [](const at::Tensor& x) { return at::elu(x, 0.7); })};
}

std::vector<NodeCase> other_cases() {
  const at::Tensor indices = at::tensor({3, 0, 6, 3, 2, 0, 1, 3}, at::kLong).view({2, 4});
  std::vector<NodeCase> cases{unary(
                                  "flatten", "aten::flatten", {integer(1), integer(-1)},
                                  [](const at::Tensor& x) { return x.flatten(1); }, {3, 4, 5}, "using_ints"),
                              unary("reshape", "aten::reshape", {integers({3, 2, -1})},
                                    [](const at::Tensor& x) {
                                      return x.reshape({3, 2, -1});
                                    },
                                    {3, 4, 5}),
                              unary("view", "aten::view", {integers({3, 20})},
                                    [](const at::Tensor& x) {
                                      return x.view({3, 20});
                                    },
                                    {3, 4, 5}),
                              unary(
                                  "softmax", "aten::softmax", {integer(1), Argument::none()},
                                  [](const at::Tensor& x) { return at::softmax(x, 1); }, {3, 4, 5}, "int")};
  cases.push_back({"embedding",
                   "aten::embedding",
                   "",
                   {random({7, 5})},
                   {},
                   {indices},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]), of(ids[1]), integer(2), flag(false), flag(false)};
                   },
                   [=](const Tensors& t, bool) { return at::embedding(t[0], indices, 2); }});
  for (const double factor : {1.0, -2.5}) {
    cases.push_back({factor == 1 ? "add" : "add_scaled",
                     "aten::add",
                     "Tensor",
                     {random({3, 5}), random({3, 5})},
                     {},
                     {},
                     [=](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                       return {of(ids[0]), of(ids[1]), number(factor)};
                     },
                     [=](const Tensors& t, bool) { return at::add(t[0], t[1], factor); }});
  }
  cases.push_back({"add_broadcast",
                   "aten::add",
                   "Tensor",
                   {random({3, 5}), random({5})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]), of(ids[1]), integer(1)};
                   },
                   [](const Tensors& t, bool) { return at::add(t[0], t[1]); }});
  cases.push_back({"add_twice_the_same",
                   "aten::add",
                   "Tensor",
                   {random({3, 5})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {of(ids[0]), of(ids[0]), integer(1)};
                   },
                   [](const Tensors& t, bool) { return at::add(t[0], t[0]); }});
  cases.push_back({"cat",
                   "aten::cat",
                   "",
                   {random({3, 2, 4}), random({3, 5, 4}), random({3, 1, 4})},
                   {},
                   {},
                   [](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                     return {Argument::list(ids), integer(-2)};
                   },
                   [](const Tensors& t, bool) { return at::cat(t, 1); }});
  return cases;
}

std::vector<NodeCase> all_cases() {
  at::manual_seed(7);
  std::vector<NodeCase> all;
  for (const auto& family : {linear_cases(), convolution_cases(), pooling_cases(), normalisation_cases(),
                             activation_cases(), other_cases()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

struct Run {
  NodeCase node;
  Engine engine;
  at::ScalarType precision;
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.node.name << " in " << run.precision; }

class InstructionTest : public ::testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
  }

  std::shared_ptr<const program::Program> compiled() const {
    const auto& [node, engine, precision] = GetParam();
    NodeGraph graph;
    std::vector<ValueId> ids;
    for (const at::Tensor& tensor : node.tensors) ids.push_back(graph.parameter(tensor));
    for (const at::Tensor& tensor : node.buffers) ids.push_back(graph.buffer(tensor));
    for (const at::Tensor& tensor : node.constants) ids.push_back(graph.constant(tensor));
    graph.output(graph.call(node.target, node.overload, node.arguments(ids)));
    return compile(graph, engine, precision);
  }

  /// The same numbers as the program's, as autograd leaves where `trainable`.
  Tensors reference_tensors(const Tensors& tensors, bool trainable) const {
    Tensors copies;
    for (const at::Tensor& tensor : tensors) {
      copies.push_back(tensor.to(GetParam().precision, false, /*copy=*/true).set_requires_grad(trainable));
    }
    return copies;
  }
};

TEST_P(InstructionTest, OutputGradientsAndBuffersEqualAutograd) {
  const NodeCase& node = GetParam().node;
  const double allowed = tolerance(GetParam().precision);
  BoundModel model(compiled());
  Tensors leaves = reference_tensors(node.tensors, true);
  Tensors buffers = reference_tensors(node.buffers, false);
  Tensors all = leaves;
  all.insert(all.end(), buffers.begin(), buffers.end());

  const at::Tensor expected = node.reference(all, /*training=*/true);
  const at::Tensor output = model.forward({});
  EXPECT_TRUE(near(output, expected.detach(), allowed));
  EXPECT_FALSE(output.requires_grad());

  const at::Tensor output_gradient = at::randn(expected.sizes(), at::kDouble).to(GetParam().precision);
  model.backward(output_gradient.clone());
  const Tensors gradients = torch::autograd::grad({expected}, leaves, {output_gradient});
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(near(model.gradients[i], gradients[i], allowed)) << "gradient " << i;
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(near(model.buffers[i], buffers[i], allowed)) << "buffer " << i;
}

TEST_P(InstructionTest, EvaluationEqualsLibTorchAndLeavesBuffersAlone) {
  const NodeCase& node = GetParam().node;
  BoundModel model(compiled());
  Tensors all = reference_tensors(node.tensors, false);
  const Tensors buffers = reference_tensors(node.buffers, false);
  all.insert(all.end(), buffers.begin(), buffers.end());
  EXPECT_TRUE(near(model.forward({}, /*training=*/false), node.reference(all, false), tolerance(GetParam().precision)));
  const Tensors untouched = reference_tensors(node.buffers, false);
  for (size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(at::equal(model.buffers[i], untouched[i])) << "buffer " << i;
}

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const NodeCase& node : all_cases()) {
    for (const Engine engine : {Engine::kInstructions, Engine::kIsland}) {
      for (const at::ScalarType precision : {at::kDouble, at::kFloat}) runs.push_back({node, engine, precision});
    }
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Nodes, InstructionTest, ::testing::ValuesIn(all_runs()), [](const auto& info) {
  return info.param.node.name + (info.param.engine == Engine::kIsland ? "_island" : "_instruction") +
         (info.param.precision == at::kDouble ? "_float64" : "_float32");
});

}  // namespace
}  // namespace tutti::testing
