// Convolutions and normalisations as exported graphs write them, against LibTorch's autograd.
#include "operator_case.h"

namespace tutti::testing {
namespace {

class LayerOperatorTest : public ::testing::TestWithParam<OperatorRun> {};

TEST_P(LayerOperatorTest, EqualsAutograd) { expect_equals_island(GetParam()); }

std::vector<OperatorCase> convolutions() {
  std::vector<OperatorCase> cases;
  const auto padded = [&](std::string name, const std::string& target, const std::vector<TestOperand>& operands,
                          const char* padding, int64_t dilation, int64_t groups) {
    cases.push_back({std::move(name), target, "padding", operands,
                     followed_by({integers({1}), text(padding), integers({dilation}), integer(groups)})});
  };
  padded("conv1d_same", "aten::conv1d", {rows_of({4, 9}), fixed({6, 4, 3}), fixed({6})}, "same", 1, 1);
  padded("conv1d_same_dilated", "aten::conv1d", {rows_of({4, 9}), fixed({6, 2, 4}), fixed({6})}, "same", 2, 2);
  padded("conv2d_same", "aten::conv2d", {rows_of({2, 6, 5}), fixed({3, 2, 3, 5}), fixed({3})}, "same", 1, 1);
  padded("conv2d_valid", "aten::conv2d", {rows_of({2, 6, 5}), fixed({3, 2, 3, 2}), fixed({3})}, "valid", 1, 1);
  padded("conv3d_same", "aten::conv3d", {rows_of({2, 4, 5, 3}), fixed({3, 2, 3, 1, 3}), fixed({3})}, "same", 1, 1);
  const auto general = [&](std::string name, const std::vector<TestOperand>& operands, bool is_transposed) {
    cases.push_back({std::move(name), "aten::convolution", "", operands,
                     followed_by({integers({2, 1}), integers({1, 0}), integers({1, 1}), flag(is_transposed),
                                  integers({is_transposed ? 1 : 0, 0}), integer(2)})});
  };
  general("convolution", {rows_of({4, 6, 5}), fixed({6, 2, 3, 2}), fixed({6})}, false);
  general("convolution_transposed", {rows_of({4, 3, 4}), fixed({4, 3, 3, 2}), fixed({6})}, true);
  cases.push_back({"max_pool2d_with_indices",
                   "aten::max_pool2d_with_indices",
                   "",
                   {rows_of({2, 7, 6})},
                   followed_by({integers({3, 2}), integers({2, 2}), integers({1, 0}), integers({1, 1}), flag(false)}),
                   /*result_count=*/2});
  cases.push_back({"_adaptive_avg_pool2d",
                   "aten::_adaptive_avg_pool2d",
                   "",
                   {rows_of({2, 7, 6})},
                   followed_by({integers({3, 2})})});
  cases.push_back({"conv_transpose1d",
                   "aten::conv_transpose1d",
                   "",
                   {rows_of({4, 7}), fixed({4, 3, 3}), fixed({6})},
                   followed_by({integers({2}), integers({1}), integers({1}), integer(2), integers({1})})});
  cases.push_back(
      {"conv_transpose3d",
       "aten::conv_transpose3d",
       "input",
       {rows_of({2, 3, 2, 3}), fixed({2, 3, 2, 2, 2}), fixed({3})},
       followed_by({integers({2, 1, 2}), integers({0, 0, 1}), integers({1, 0, 0}), integer(1), integers({1, 1, 1})})});
  return cases;
}

std::vector<OperatorCase> normalisations() {
  const auto instance_norm = [](std::string name, std::vector<int64_t> shape, bool is_affine) {
    const int64_t channels = shape.front();
    std::vector<TestOperand> operands{rows_of(std::move(shape))};
    if (is_affine) operands.insert(operands.end(), {fixed({channels}), fixed({channels})});
    return OperatorCase{std::move(name), "aten::instance_norm", "", operands,
                        [is_affine](const std::vector<ValueId>& ids) -> std::vector<Argument> {
                          const Argument none = Argument::none();
                          return {Argument::of(ids[0]),
                                  is_affine ? Argument::of(ids[1]) : none,
                                  is_affine ? Argument::of(ids[2]) : none,
                                  none,
                                  none,
                                  flag(true),
                                  number(0.1),
                                  number(1e-3),
                                  flag(true)};
                        }};
  };
  const auto rms_norm = [](std::string name, std::vector<int64_t> over, bool has_weight, Argument epsilon) {
    std::vector<TestOperand> operands{rows_of({3, 4, 5})};
    if (has_weight) operands.push_back(fixed(over));
    return OperatorCase{
        std::move(name), "aten::rms_norm", "", operands, [=](const std::vector<ValueId>& ids) -> std::vector<Argument> {
          return {Argument::of(ids[0]), integers(over), has_weight ? Argument::of(ids[1]) : Argument::none(), epsilon};
        }};
  };
  return {
      instance_norm("instance_norm_1d", {4, 9}, true),        instance_norm("instance_norm_2d", {4, 5, 6}, true),
      instance_norm("instance_norm_plain", {4, 5, 6}, false), rms_norm("rms_norm", {5}, true, number(1e-3)),
      rms_norm("rms_norm_two", {4, 5}, true, number(1e-3)),   rms_norm("rms_norm_plain", {5}, false, Argument::none())};
}

INSTANTIATE_TEST_SUITE_P(Convolutions, LayerOperatorTest, ::testing::ValuesIn(in_both_precisions(convolutions())),
                         run_name);
INSTANTIATE_TEST_SUITE_P(Normalisations, LayerOperatorTest, ::testing::ValuesIn(in_both_precisions(normalisations())),
                         run_name);

}  // namespace
}  // namespace tutti::testing
