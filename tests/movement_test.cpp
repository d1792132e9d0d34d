// Operators that move, view or repeat elements, and operators without gradients: instructions against the island.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <functional>

#include "probed_graph.h"

namespace tutti::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Engine = program::CompileOptions::Engine;
using graph::kNoValue;

Argument of(ValueId id) { return Argument::of(id); }
Argument none() { return Argument::none(); }

/// Nodes on a value of [batch, 4, 6]; returns what they make.
struct MovementCase {
  std::string name;
  std::function<ValueIds(ProbedGraph&, ValueId)> build;
  bool of_parameter_too = true;  ///< also where the value is a parameter of [3, 4, 6]
};

MovementCase single(std::string name, const std::string& target, const std::string& overload,
                    std::vector<Argument> rest) {
  return {std::move(name), [=](ProbedGraph& graph, ValueId x) -> ValueIds {
            std::vector<Argument> arguments{of(x)};
            arguments.insert(arguments.end(), rest.begin(), rest.end());
            return {graph.call(target, overload, std::move(arguments))};
          }};
}

MovementCase several(std::string name, const std::string& target, const std::string& overload,
                     std::vector<Argument> rest, int64_t count) {
  return {std::move(name), [=](ProbedGraph& graph, ValueId x) {
            std::vector<Argument> arguments{of(x)};
            arguments.insert(arguments.end(), rest.begin(), rest.end());
            return graph.call_several(target, overload, std::move(arguments), count);
          }};
}

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

std::vector<MovementCase> shape_cases() {
  return {single("transpose", "aten::transpose", "int", {integer(-1), integer(1)}),
          single("permute", "aten::permute", "", {integers({2, 0, 1})}),
          single("swapaxes", "aten::swapaxes", "", {integer(0), integer(2)}),
          single("movedim", "aten::movedim", "intlist", {integers({0, 2}), integers({2, 1})}),
          single("matrix_transpose", "aten::mT", "", {}),
          single("unsqueeze", "aten::unsqueeze", "", {integer(-2)}),
          single("unflatten", "aten::unflatten", "int", {integer(-1), integers({2, -1})}),
          single("flatten", "aten::flatten", "using_ints", {integer(1), integer(-1)}),
          single("flatten_with_the_batch", "aten::flatten", "using_ints", {integer(0), integer(1)}),
          {"view_of_transposed",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId turned = graph.call("aten::transpose", "int", {of(x), integer(1), integer(2)});
             return {graph.call("aten::reshape", "", {of(turned), integers({-1, 24})})};
           }},
          {"view_as",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId like = graph.call("aten::unflatten", "int", {of(x), integer(1), integers({2, 2})});
             return {graph.call("aten::view_as", "", {of(x), of(like)})};
           }},
          {"numpy_transpose",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId matrix = graph.call("aten::flatten", "using_ints", {of(x), integer(1), integer(-1)});
             return {graph.call("aten::numpy_T", "", {of(matrix)})};
           }},
          {"squeeze", [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId wide = graph.call("aten::unsqueeze", "", {of(x), integer(1)});
             return {graph.call("aten::squeeze", "dim", {of(wide), integer(1)}),
                     graph.call("aten::squeeze", "dims", {of(wide), integers({1, 2})})};
           }}};
}

std::vector<MovementCase> part_cases() {
  return {
      single("select", "aten::select", "int", {integer(1), integer(-2)}),
      single("select_row", "aten::select", "int", {integer(0), integer(1)}),
      single("slice", "aten::slice", "Tensor", {integer(2), integer(1), integer(kToTheEnd), integer(2)}),
      single("slice_of_all", "aten::slice", "Tensor", {integer(1), none(), none(), integer(1)}),
      single("narrow", "aten::narrow", "", {integer(2), integer(2), integer(3)}),
      single("diagonal", "aten::diagonal", "", {integer(1), integer(1), integer(2)}),
      several("split", "aten::split", "Tensor", {integer(4), integer(2)}, 2),
      several("split_with_sizes", "aten::split_with_sizes", "", {integers({1, 3}), integer(1)}, 2),
      several("chunk", "aten::chunk", "", {integer(3), integer(-1)}, 3),
      several("unbind", "aten::unbind", "int", {integer(1)}, 4),
      several("tensor_split", "aten::tensor_split", "sections", {integer(4), integer(2)}, 4),
      {"one_unread_part",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueIds parts = graph.call_several("aten::chunk", "", {of(x), integer(3), integer(2)}, 3);
         return {parts[2], parts[0]};
       }},
      {"one_unwanted_part",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         ValueIds parts = graph.call_several("aten::unbind", "int", {of(x), integer(1)}, 4);
         graph.graph().nodes.back().outputs[1] = kNoValue;
         return {parts[0], parts[2], parts[3]};
       }},
      {"parts_that_overlap",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const auto slice = [&](int64_t begin, int64_t end) {
           return graph.call("aten::slice", "Tensor", {of(x), integer(1), integer(begin), integer(end), integer(1)});
         };
         return {slice(0, 3), slice(1, 4), slice(2, 3)};
       }},
      {"stack", [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId flipped = graph.call("aten::flip", "", {of(x), integers({1})});
         return {graph.call("aten::stack", "", {Argument::list({x, flipped, x}), integer(-1)})};
       }}};
}

std::vector<MovementCase> copy_cases() {
  const Argument type = integer(static_cast<int64_t>(at::kFloat)), wide = integer(static_cast<int64_t>(at::kDouble));
  return {single("contiguous", "aten::contiguous", "", {integer(0)}),
          single("clone", "aten::clone", "", {none()}),
          single("to_dtype", "aten::to", "dtype", {type, flag(false), flag(false), none()}),
          single("to_wider", "aten::to", "dtype", {wide, flag(false), flag(false), none()}),
          single("to_dtype_layout", "aten::to", "dtype_layout",
                 {type, none(), none(), none(), flag(false), flag(false), none()}),
          single("flip", "aten::flip", "", {integers({0, 2})}),
          single("roll", "aten::roll", "", {integers({1, -2}), integers({1, 2})}),
          single("roll_flat", "aten::roll", "", {integers({5}), integers({})}),
          single("repeat", "aten::repeat", "", {integers({2, 1, 3, 2})}),
          single("pad", "aten::pad", "", {integers({1, 2, 0, 1}), text("constant"), none()}),
          single("pad_and_crop", "aten::constant_pad_nd", "", {integers({-1, 2, 2, -3}), number(0.5)}),
          single("unfold", "aten::unfold", "", {integer(2), integer(3), integer(1)}),
          {"pixel_shuffle",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId image = graph.call("aten::unsqueeze", "", {of(x), integer(-1)});
             return {graph.call("aten::pixel_shuffle", "", {of(image), integer(2)})};
           }},
          {"pixel_unshuffle",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             return {graph.call("aten::pixel_unshuffle", "", {of(x), integer(2)})};
           }},
          {"expand",
           [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId row = graph.call("aten::unsqueeze", "", {of(x), integer(1)});
             return {graph.call("aten::expand", "", {of(row), integers({2, -1, 3, -1, -1}), flag(false)})};
           }},
          {"expand_as", [](ProbedGraph& graph, ValueId x) -> ValueIds {
             const ValueId row =
                 graph.call("aten::slice", "Tensor", {of(x), integer(1), integer(1), integer(2), integer(1)});
             return {graph.call("aten::expand_as", "", {of(row), of(x)})};
           }}};
}

std::vector<MovementCase> indexing_cases() {
  const at::Tensor places = at::tensor({2, 0, 2, 3, 2}, at::kLong);
  return {
      {"index_select",
       [=](ProbedGraph& graph, ValueId x) -> ValueIds {
         return {graph.call("aten::index_select", "", {of(x), integer(1), of(graph.constant(places))})};
       }},
      {"gather",
       [=](ProbedGraph& graph, ValueId x) -> ValueIds {
         const at::Tensor index = at::tensor({0, 3, 3, 1}, at::kLong).view({1, 2, 2}).expand({2, 2, 2}).contiguous();
         return {graph.call("aten::gather", "", {of(x), integer(1), of(graph.constant(index)), flag(false)})};
       }},
      {"index_of_columns",
       [=](ProbedGraph& graph, ValueId x) -> ValueIds {
         return {graph.call("aten::index", "Tensor", {of(x), Argument::list({kNoValue, graph.constant(places)})})};
       }},
      {"index_of_pairs", [=](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId column = graph.constant(places), last = graph.constant(at::tensor({5, 1, 5, 0, 5}, at::kLong));
         return {graph.call("aten::index", "Tensor", {of(x), Argument::list({kNoValue, column, last})})};
       }}};
}

/// Cases whose arguments hold the batch size.
std::vector<MovementCase> number_cases() {
  std::vector<MovementCase> cases{
      {"view_with_the_batch",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId rows = graph.rows(x);
         return {graph.call("aten::view", "",
                            {of(x), Argument::mixed({rows, kNoValue, kNoValue}, std::vector<int64_t>{0, 3, -1})})};
       }},
      {"view_with_a_multiple_of_the_batch",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId many = graph.number("_operator::mul", "", {of(graph.rows(x)), integer(4)});
         return {graph.call("aten::view", "", {of(x), Argument::mixed({many, kNoValue}, std::vector<int64_t>{0, 6})})};
       }},
      {"expand_to_the_batch",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId start = graph.parameter(at::randn({1, 2, 6}, at::kDouble));
         const ValueId wide = graph.call(
             "aten::expand", "",
             {of(start), Argument::mixed({graph.rows(x), kNoValue, kNoValue}, std::vector<int64_t>{0, -1, -1}),
              flag(false)});
         return {graph.call("aten::cat", "", {Argument::list({wide, x}), integer(1)})};
       }},
      {"repeat_by_the_batch",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId start = graph.parameter(at::randn({2, 6}, at::kDouble));
         return {graph.call(
             "aten::repeat", "",
             {of(start), Argument::mixed({graph.rows(x), kNoValue, kNoValue}, std::vector<int64_t>{0, 1, 2})})};
       }},
      {"slice_to_the_batch",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId table = graph.parameter(at::randn({9, 4}, at::kDouble));
         return {
             graph.call("aten::slice", "Tensor", {of(table), integer(0), integer(0), of(graph.rows(x)), integer(1)})};
       }},
      {"positions",
       [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId table = graph.parameter(at::randn({9, 4}, at::kDouble));
         const ValueId places = graph.call("aten::arange", "", {of(graph.rows(x)), none(), none(), none(), none()});
         return {graph.call("aten::embedding", "", {of(table), of(places), integer(-1), flag(false), flag(false)})};
       }},
      {"row_of_each", [](ProbedGraph& graph, ValueId x) -> ValueIds {
         const ValueId places = graph.call("aten::arange", "", {of(graph.rows(x)), none(), none(), none(), none()});
         const ValueId columns = graph.call("aten::remainder", "Scalar", {of(places), integer(4)});
         return {graph.call("aten::index", "Tensor", {of(x), Argument::list({places, columns})})};
       }}};
  for (MovementCase& each : cases) each.of_parameter_too = false;
  return cases;
}

enum class Source { kResult, kSharedResult, kParameter };

struct Run {
  MovementCase movement;
  Source source;
  at::ScalarType precision;
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.movement.name << " in " << run.precision; }

class MovementTest : public ::testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    at::get_num_threads();
    at::set_num_threads(1);
    at::manual_seed(23);
  }
};

std::shared_ptr<const graph::Graph> graph_of(const Run& run) {
  ProbedGraph graph;
  const ValueId x = graph.input({4, 6});
  if (run.source == Source::kParameter) {
    const ValueId parameter = graph.parameter(at::randn({3, 4, 6}, at::kDouble));
    return graph.finish(run.movement.build(graph, parameter));
  }
  const ValueId scale = graph.parameter(at::randn({4, 6}, at::kDouble));
  const ValueId scaled = graph.call("aten::mul", "Tensor", {of(x), of(scale)});
  ValueIds outputs;
  if (run.source == Source::kSharedResult) outputs.push_back(graph.call("aten::tanh", "", {of(scaled)}));
  const ValueIds made = run.movement.build(graph, scaled);
  outputs.insert(outputs.end(), made.begin(), made.end());
  if (run.source == Source::kSharedResult) outputs.push_back(graph.call("aten::sigmoid", "", {of(scaled)}));
  return graph.finish(outputs);
}

TEST_P(MovementTest, IsAnInstructionThatEqualsAutogradAtEveryBatchSize) {
  const auto graph = graph_of(GetParam());
  const at::ScalarType precision = GetParam().precision;
  BoundModel own(program::Program::compile(graph, {Engine::kInstructions, precision}));
  BoundModel oracle(program::Program::compile(graph, {Engine::kIsland, precision}));
  std::vector<std::string> islands = own.program->islands();
  std::erase_if(islands, [](const std::string& name) { return name.starts_with("aten::mul"); });
  EXPECT_THAT(islands, IsEmpty());
  for (const int64_t rows : {5, 2}) {
    SCOPED_TRACE("batch of " + std::to_string(rows));
    const at::Tensor input = at::randn({rows, 4, 6}, at::kDouble).to(precision);
    const std::vector<at::Tensor> found = step(own, input), expected = step(oracle, input);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type()) << "output " << i;
      EXPECT_TRUE(near(found[i], expected[i], tolerance(precision))) << "output " << i;
    }
    for (size_t i = 0; i < oracle.gradients.size(); ++i) {
      EXPECT_TRUE(near(own.gradients[i], oracle.gradients[i], tolerance(precision))) << "parameter " << i;
    }
  }
}

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const auto& family : {shape_cases(), part_cases(), copy_cases(), indexing_cases(), number_cases()}) {
    for (const MovementCase& movement : family) {
      for (const Source source : {Source::kResult, Source::kSharedResult, Source::kParameter}) {
        if (source == Source::kParameter && !movement.of_parameter_too) continue;
        for (const at::ScalarType precision : {at::kDouble, at::kFloat}) runs.push_back({movement, source, precision});
      }
    }
  }
  return runs;
}

std::string run_name(const ::testing::TestParamInfo<Run>& info) {
  const char* source = info.param.source == Source::kResult         ? "_of_result"
                       : info.param.source == Source::kSharedResult ? "_of_shared_result"
                                                                    : "_of_parameter";
  return info.param.movement.name + source + (info.param.precision == at::kDouble ? "_float64" : "_float32");
}

INSTANTIATE_TEST_SUITE_P(Nodes, MovementTest, ::testing::ValuesIn(all_runs()), run_name);

/// Nodes through which no gradient flows, beside one through which it does.
TEST(CallTest, OperatorsWithoutGradientAreInstructions) {
  at::set_num_threads(1);
  ProbedGraph graph;
  const ValueId x = graph.input({4, 6});
  const ValueId scaled =
      graph.call("aten::mul", "Tensor", {of(x), of(graph.parameter(at::randn({4, 6}, at::kDouble)))});
  const ValueId cut = graph.call("aten::detach", "", {of(scaled)});
  const ValueId norm =
      graph.call("aten::linalg_vector_norm", "", {of(cut), number(2), integers({2}), flag(true), none()});
  const ValueId mask = graph.call("aten::gt", "Scalar", {of(scaled), number(0.1)});
  const ValueId zeros = graph.call("aten::zeros_like", "", {of(scaled), none(), none(), none(), none(), none()});
  const ValueIds best =
      graph.call_several("aten::topk", "", {of(cut), integer(2), integer(-1), flag(true), flag(true)}, 2);
  graph.call_several("aten::_assert_tensor_metadata", "",
                     {of(scaled), none(), none(), integer(static_cast<int64_t>(at::kFloat)), none(), none()}, 0);
  const auto finished = graph.finish({scaled, norm, mask, zeros, best[0], best[1]});
  for (const at::ScalarType precision : {at::kDouble, at::kFloat}) {
    BoundModel own(program::Program::compile(finished, {Engine::kInstructions, precision}));
    BoundModel oracle(program::Program::compile(finished, {Engine::kIsland, precision}));
    for (const std::string& name : own.program->islands()) EXPECT_EQ(name, "aten::mul.Tensor");
    const at::Tensor input = at::randn({3, 4, 6}, at::kDouble).to(precision);
    own.forward({input});
    oracle.forward({input});
    for (const ValueId id : finished->outputs) {
      EXPECT_TRUE(near(own.frame.values[id], oracle.frame.values[id], tolerance(precision))) << id;
    }
    for (BoundModel* model : {&own, &oracle}) model->backward(at::ones({3, 4, 6}, input.options()));
    EXPECT_TRUE(near(own.gradients[0], oracle.gradients[0], tolerance(precision)));
  }
}

TEST(CallTest, AComplexValueInTheMiddleCarriesItsGradient) {
  at::set_num_threads(1);
  ProbedGraph graph;
  const ValueId x = graph.input({4, 6});
  const ValueId scaled =
      graph.call("aten::mul", "Tensor", {of(x), of(graph.parameter(at::randn({4, 6}, at::kDouble)))});
  const ValueId waves = graph.call("aten::fft_rfft", "", {of(scaled), none(), integer(-1), none()});
  const ValueId turned = graph.call("aten::transpose", "int", {of(waves), integer(1), integer(2)});
  const ValueId part =
      graph.call("aten::slice", "Tensor", {of(turned), integer(1), integer(1), integer(3), integer(1)});
  const auto finished = graph.finish({graph.call("aten::real", "", {of(part)})});
  BoundModel own(program::Program::compile(finished, {Engine::kInstructions, at::kDouble}));
  BoundModel oracle(program::Program::compile(finished, {Engine::kIsland, at::kDouble}));
  const at::Tensor input = at::randn({3, 4, 6}, at::kDouble);
  EXPECT_TRUE(near(step(own, input)[0], step(oracle, input)[0], tolerance(at::kDouble)));
  EXPECT_TRUE(near(own.gradients[0], oracle.gradients[0], tolerance(at::kDouble)));
}

TEST(CallTest, AParameterWhoseShapeAloneIsReadIsUntouched) {
  at::set_num_threads(1);
  ProbedGraph graph;
  const ValueId x = graph.input({4, 6});
  const ValueId row = graph.parameter(at::randn({1, 1, 6}, at::kDouble));
  const ValueId like = graph.call("aten::mul", "Tensor", {of(x), of(graph.parameter(at::randn({4, 6}, at::kDouble)))});
  const auto finished = graph.finish({graph.call("aten::expand_as", "", {of(row), of(like)})});
  BoundModel own(program::Program::compile(finished, {Engine::kInstructions, at::kDouble}));
  step(own, at::randn({3, 4, 6}, at::kDouble));
  EXPECT_FALSE(own.gradients[0].isnan().any().item<bool>());
  EXPECT_TRUE(at::equal(own.gradients[1], at::zeros({4, 6}, at::kDouble)));
}

}  // namespace
}  // namespace tutti::testing
