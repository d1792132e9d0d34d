// Losses against LibTorch's loss functions with reduction "sum" and "mean", and their autograd.
#include "src/program/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "node_graph.h"

namespace tutti::testing {
namespace {

using program::evaluate_loss;
using program::LossSpec;
using program::LossSums;
using Kind = LossSpec::Kind;

constexpr int64_t kIgnored = -7;

double loss_tolerance(at::ScalarType precision) { return precision == at::kDouble ? 1e-12 : 1e-5; }

at::Tensor vector_of(const std::vector<double>& values, at::ScalarType type) {
  return at::tensor(values, at::kDouble).to(type);
}

struct LossCase {
  std::string name;
  LossSpec spec;
  at::Tensor outputs, targets;  ///< float64
  /// LibTorch's loss with the given reduction.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets, at::Reduction::Reduction)> reference;
};

LossCase cross_entropy_case(std::string name, const LossSpec& spec, at::IntArrayRef output_shape, bool has_ignored) {
  std::vector<int64_t> target_shape = output_shape.vec();
  target_shape.erase(target_shape.begin() + 1);
  at::Tensor targets = at::randint(output_shape[1], target_shape, at::kLong);
  if (has_ignored) targets.view(-1)[1] = spec.ignore_index;
  return {std::move(name), spec, at::randn(output_shape, at::kDouble) * 3, targets,
          [spec](const at::Tensor& outputs, const at::Tensor& labels, at::Reduction::Reduction reduction) {
            const at::Tensor weights =
                spec.class_weights.empty() ? at::Tensor() : vector_of(spec.class_weights, outputs.scalar_type());
            return at::cross_entropy_loss(outputs, labels, weights, reduction, spec.ignore_index, spec.label_smoothing);
          }};
}

std::vector<LossCase> cross_entropy_cases() {
  std::vector<LossCase> cases;
  for (const double smoothing : {0.0, 0.2}) {
    for (const bool weighted : {false, true}) {
      for (const bool ignored : {false, true}) {
        for (const bool dense : {false, true}) {
          LossSpec spec;
          spec.label_smoothing = smoothing;
          spec.ignore_index = kIgnored;
          if (weighted) spec.class_weights = {0.5, 2, 0.25, 1};
          const std::string name = std::string("cross_entropy") + (smoothing > 0 ? "_smooth" : "") +
                                   (weighted ? "_weighted" : "") + (ignored ? "_ignored" : "") +
                                   (dense ? "_dense" : "");
          cases.push_back(
              cross_entropy_case(name, spec, dense ? at::IntArrayRef{3, 4, 2, 5} : at::IntArrayRef{6, 4}, ignored));
        }
      }
    }
  }
  return cases;
}

std::vector<LossCase> all_losses() {
  at::manual_seed(3);
  std::vector<LossCase> cases = cross_entropy_cases();
  const at::Tensor outputs = at::randn({5, 3}, at::kDouble) * 2;
  const at::Tensor targets = at::randn({5, 3}, at::kDouble);
  LossSpec spec;
  spec.kind = Kind::kMse;
  cases.push_back(
      {"mse", spec, outputs, targets, [](const auto& x, const auto& t, auto r) { return at::mse_loss(x, t, r); }});
  spec.kind = Kind::kL1;
  cases.push_back(
      {"l1", spec, outputs, targets, [](const auto& x, const auto& t, auto r) { return at::l1_loss(x, t, r); }});
  spec.kind = Kind::kHuber;
  spec.delta = 0.7;
  cases.push_back({"huber", spec, outputs, targets,
                   [](const auto& x, const auto& t, auto r) { return at::huber_loss(x, t, r, 0.7); }});
  spec.kind = Kind::kBceWithLogits;
  const at::Tensor chances = at::rand({5, 3}, at::kDouble);
  cases.push_back({"bce", spec, outputs * 20, chances, [](const auto& x, const auto& t, auto r) {
                     return at::binary_cross_entropy_with_logits(x, t, {}, {}, r);
                   }});
  spec.positive_weights = {0.3, 1, 4};
  cases.push_back({"bce_weighted", spec, outputs, chances, [](const auto& x, const auto& t, auto r) {
                     return at::binary_cross_entropy_with_logits(x, t, {}, vector_of({0.3, 1, 4}, x.scalar_type()), r);
                   }});
  spec.positive_weights = {3};
  cases.push_back({"bce_one_weight", spec, outputs, chances, [](const auto& x, const auto& t, auto r) {
                     return at::binary_cross_entropy_with_logits(x, t, {}, vector_of({3}, x.scalar_type()), r);
                   }});
  return cases;
}

struct LossRun {
  LossCase loss;
  at::ScalarType precision;
};
void PrintTo(const LossRun& run, std::ostream* out) { *out << run.loss.name << " in " << run.precision; }

class LossTest : public ::testing::TestWithParam<LossRun> {
 protected:
  at::Tensor outputs() const { return GetParam().loss.outputs.to(GetParam().precision, false, /*copy=*/true); }
  at::Tensor targets() const {
    const at::Tensor& given = GetParam().loss.targets;
    return given.scalar_type() == at::kLong ? given : given.to(GetParam().precision);
  }
};

TEST_P(LossTest, SumDenominatorAndGradientEqualLibTorch) {
  const auto& [loss, precision] = GetParam();
  const double allowed = loss_tolerance(precision);
  const at::Tensor leaf = outputs().set_requires_grad(true);
  const at::Tensor sum = loss.reference(leaf, targets(), at::Reduction::Sum);
  const at::Tensor mean = loss.reference(leaf, targets(), at::Reduction::Mean);

  at::Tensor gradient;
  const LossSums found = evaluate_loss(loss.spec, outputs(), targets(), &gradient);
  EXPECT_NEAR(found.sum, sum.item<double>(), allowed * std::abs(sum.item<double>()));
  EXPECT_NEAR(found.sum / found.denominator, mean.item<double>(), allowed * std::abs(mean.item<double>()));
  EXPECT_TRUE(near(gradient, torch::autograd::grad({sum}, {leaf})[0], allowed));
  EXPECT_EQ(gradient.scalar_type(), precision);
}

TEST_P(LossTest, GradientIsOptional) {
  const auto& [loss, precision] = GetParam();
  at::Tensor gradient;
  const LossSums with = evaluate_loss(loss.spec, outputs(), targets(), &gradient);
  const LossSums without = evaluate_loss(loss.spec, outputs(), targets(), nullptr);
  EXPECT_EQ(with.sum, without.sum);
  EXPECT_EQ(with.denominator, without.denominator);
}

TEST_P(LossTest, SumsOfPartsAddUpToTheWhole) {
  const auto& [loss, precision] = GetParam();
  const at::Tensor x = outputs(), t = targets();
  const LossSums whole = evaluate_loss(loss.spec, x, t, nullptr);
  LossSums parts;
  for (int64_t row = 0; row < x.size(0); ++row) {
    const LossSums part = evaluate_loss(loss.spec, x.narrow(0, row, 1), t.narrow(0, row, 1), nullptr);
    parts.sum += part.sum;
    parts.denominator += part.denominator;
  }
  EXPECT_NEAR(parts.sum, whole.sum, loss_tolerance(precision) * std::abs(whole.sum));
  EXPECT_NEAR(parts.denominator, whole.denominator, 1e-12 * whole.denominator);
}

std::vector<LossRun> all_runs() {
  std::vector<LossRun> runs;
  for (const LossCase& loss : all_losses()) {
    for (const at::ScalarType precision : {at::kDouble, at::kFloat}) runs.push_back({loss, precision});
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Losses, LossTest, ::testing::ValuesIn(all_runs()), [](const auto& info) {
  return info.param.loss.name + (info.param.precision == at::kDouble ? "_float64" : "_float32");
});

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Loss, NamesALabelOutOfRange) {
  const at::Tensor labels = at::tensor({0, 4, 1}, at::kLong);
  const std::string message = message_of([&] { evaluate_loss(LossSpec{}, at::zeros({3, 4}), labels, nullptr); });
  EXPECT_NE(message.find("label 4 in row 1"), std::string::npos) << message;
}

TEST(Loss, NamesAShapeThatDoesNotFit) {
  LossSpec spec;
  spec.kind = Kind::kMse;
  const std::string message = message_of([&] { evaluate_loss(spec, at::zeros({3, 4}), at::zeros({3, 5}), nullptr); });
  EXPECT_NE(message.find("[3, 5], expected Float of shape [3, 4]"), std::string::npos) << message;
}

TEST(Loss, AllLabelsIgnoredGivesZeroSumAndZeroGradient) {
  LossSpec spec;
  spec.label_smoothing = 0.1;
  at::Tensor gradient;
  const LossSums sums = evaluate_loss(spec, at::randn({3, 4}), at::full({3}, -100, at::kLong), &gradient);
  EXPECT_EQ(sums.sum, 0);
  EXPECT_EQ(sums.denominator, 0);
  EXPECT_TRUE(at::equal(gradient, at::zeros({3, 4})));
}

TEST(Loss, NonFiniteOutputsGiveANonFiniteSum) {
  at::Tensor outputs = at::zeros({2, 3});
  outputs[1][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(evaluate_loss(LossSpec{}, outputs, at::zeros({2}, at::kLong), nullptr).sum));
}

}  // namespace
}  // namespace tutti::testing
