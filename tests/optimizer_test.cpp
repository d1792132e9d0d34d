// Optimizers and clipping against torch::optim, and bits across instruction-set levels.
#include "src/train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/train/optimizer_kernels.h"
#include "src/train/schedule.h"

namespace tutti::train {
namespace {

using Kind = OptimizerSpec::Kind;
using TorchOptimizer = std::unique_ptr<torch::optim::Optimizer>;

struct Case {
  std::string name;
  OptimizerSpec spec;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// The same optimizer in LibTorch, for parameters that it updates in place.
TorchOptimizer torch_optimizer(const OptimizerSpec& s, const std::vector<at::Tensor>& parameters) {
  namespace o = torch::optim;
  switch (s.kind) {
    case Kind::kSgd:
      return std::make_unique<o::SGD>(parameters, o::SGDOptions(s.lr)
                                                      .momentum(s.momentum)
                                                      .dampening(s.dampening)
                                                      .weight_decay(s.weight_decay)
                                                      .nesterov(s.nesterov));
    case Kind::kAdam:
      return std::make_unique<o::Adam>(
          parameters,
          o::AdamOptions(s.lr).betas({s.beta1, s.beta2}).eps(s.eps).weight_decay(s.weight_decay).amsgrad(s.amsgrad));
    case Kind::kAdamW:
      return std::make_unique<o::AdamW>(
          parameters,
          o::AdamWOptions(s.lr).betas({s.beta1, s.beta2}).eps(s.eps).weight_decay(s.weight_decay).amsgrad(s.amsgrad));
    case Kind::kRmsprop:
      return std::make_unique<o::RMSprop>(parameters, o::RMSpropOptions(s.lr)
                                                          .alpha(s.alpha)
                                                          .eps(s.eps)
                                                          .weight_decay(s.weight_decay)
                                                          .momentum(s.momentum)
                                                          .centered(s.centered));
    case Kind::kAdagrad:
      return std::make_unique<o::Adagrad>(parameters, o::AdagradOptions(s.lr)
                                                          .lr_decay(s.lr_decay)
                                                          .eps(s.eps)
                                                          .weight_decay(s.weight_decay)
                                                          .initial_accumulator_value(s.initial_accumulator_value));
  }
  throw std::logic_error("unknown kind");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = {
      {"sgd", {.lr = 0.1}},
      {"sgd_decay", {.lr = 0.1, .weight_decay = 0.02}},
      {"sgd_momentum", {.lr = 0.1, .weight_decay = 0.02, .momentum = 0.9}},
      {"sgd_dampening", {.lr = 0.1, .weight_decay = 0.02, .momentum = 0.9, .dampening = 0.3}},
      {"sgd_nesterov", {.lr = 0.1, .weight_decay = 0.02, .momentum = 0.9, .nesterov = true}},
  };
  for (const Kind kind : {Kind::kAdam, Kind::kAdamW}) {
    const std::string name = kind == Kind::kAdam ? "adam" : "adamw";
    cases.push_back({name, {.kind = kind, .lr = 0.01}});
    cases.push_back({name + "_decay", {.kind = kind, .lr = 0.01, .weight_decay = 0.05}});
    cases.push_back({name + "_amsgrad", {.kind = kind, .lr = 0.01, .weight_decay = 0.05, .amsgrad = true}});
    cases.push_back({name + "_betas", {.kind = kind, .lr = 0.01, .beta1 = 0.3, .beta2 = 0.9, .eps = 1e-3}});
  }
  for (const bool centered : {false, true}) {
    const std::string name = centered ? "rmsprop_centered" : "rmsprop";
    cases.push_back({name, {.kind = Kind::kRmsprop, .lr = 0.01, .alpha = 0.9, .centered = centered}});
    cases.push_back(
        {name + "_decay_momentum",
         {.kind = Kind::kRmsprop, .lr = 0.01, .weight_decay = 0.05, .momentum = 0.8, .centered = centered}});
  }
  cases.push_back({"adagrad", {.kind = Kind::kAdagrad, .lr = 0.05, .eps = 1e-10}});
  cases.push_back({"adagrad_all",
                   {.kind = Kind::kAdagrad,
                    .lr = 0.05,
                    .weight_decay = 0.05,
                    .eps = 1e-10,
                    .lr_decay = 0.1,
                    .initial_accumulator_value = 0.5}});
  return cases;
}

at::Tensor normal(int64_t count, uint64_t seed, at::ScalarType type) {
  return at::randn({count}, at::detail::createCPUGenerator(seed), at::kDouble).to(type);
}

template <typename Element>
std::span<Element> elements(const at::Tensor& tensor) {
  return {tensor.data_ptr<Element>(), static_cast<size_t>(tensor.numel())};
}

/// A parameter of its own with its moments.
template <typename Element>
struct Trained {
  Trained(const OptimizerSpec& optimizer, at::Tensor initial) : spec(optimizer), parameter(std::move(initial)) {
    for (int i = 0; i < spec.moment_count(); ++i) {
      moments.push_back(at::full_like(parameter, spec.initial_moment(i)));
    }
    const bool is_adam = spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW;
    settings = {spec.lr, spec.weight_decay, is_adam ? spec.beta1 : spec.momentum};
  }

  SegmentView<Element> view(const at::Tensor& gradient) const {
    SegmentView<Element> segment{elements<Element>(parameter), elements<Element>(gradient), {}, settings};
    for (const at::Tensor& moment : moments) segment.moments.push_back(elements<Element>(moment));
    return segment;
  }

  OptimizerSpec spec;
  at::Tensor parameter;
  std::vector<at::Tensor> moments;
  SegmentSettings settings;
};

double relative_difference(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected.to(at::kDouble)).norm() / expected.to(at::kDouble).norm()).item<double>();
}

/// Both for 20 steps over the same gradients, compared after step 1 and step 20.
template <typename Element>
void compare_with_torch(const OptimizerSpec& spec, double tolerance) {
  constexpr at::ScalarType kType = c10::CppTypeToScalarType<Element>::value;
  constexpr int64_t kCount = 1003;
  at::Tensor expected = normal(kCount, 1, kType).requires_grad_();
  Trained<Element> found(spec, expected.detach().clone());
  const TorchOptimizer oracle = torch_optimizer(spec, {expected});
  for (int64_t step = 1; step <= 20; ++step) {
    const at::Tensor gradient = normal(kCount, 100 + static_cast<uint64_t>(step), kType);
    expected.mutable_grad() = gradient;
    oracle->step();
    apply(spec, step, 1, {}, found.view(gradient));
    if (step == 1 || step == 20) {
      EXPECT_LE(relative_difference(found.parameter, expected.detach()), tolerance) << "step " << step;
    }
  }
}

class OptimizerCase : public testing::TestWithParam<Case> {};

TEST_P(OptimizerCase, MatchesTorchInDouble) { compare_with_torch<double>(GetParam().spec, 1e-10); }

TEST_P(OptimizerCase, MatchesTorchInFloat) { compare_with_torch<float>(GetParam().spec, 1e-5); }

/// Two steps of `count` elements at a level; all bytes of parameter and moments.
template <typename Element>
std::string bits_at(SimdLevel level, const OptimizerSpec& spec, int64_t count) {
  constexpr at::ScalarType kType = c10::CppTypeToScalarType<Element>::value;
  Trained<Element> trained(spec, normal(count, 1, kType));
  for (int64_t step = 1; step <= 2; ++step) {
    apply_at(level, spec, step, 0.37, 0.5, trained.view(normal(count, 2 + static_cast<uint64_t>(step), kType)));
  }
  std::string bits(static_cast<const char*>(trained.parameter.data_ptr()), trained.parameter.nbytes());
  for (const at::Tensor& moment : trained.moments) {
    bits.append(static_cast<const char*>(moment.data_ptr()), moment.nbytes());
  }
  return bits;
}

TEST_P(OptimizerCase, HasTheSameBitsAtEveryInstructionSetLevel) {
  for (const int64_t count : {1, 7, 16, 33, 1003}) {
    for (const SimdLevel level : simd_levels()) {
      const int number = static_cast<int>(level);
      EXPECT_TRUE(bits_at<float>(level, GetParam().spec, count) ==
                  bits_at<float>(SimdLevel::kBaseline, GetParam().spec, count))
          << count << " floats, level " << number;
      EXPECT_TRUE(bits_at<double>(level, GetParam().spec, count) ==
                  bits_at<double>(SimdLevel::kBaseline, GetParam().spec, count))
          << count << " doubles, level " << number;
    }
  }
}

TEST_P(OptimizerCase, HasTheSameBitsWhereverASegmentStarts) {
  const OptimizerSpec& spec = GetParam().spec;
  const at::Tensor gradient = normal(101, 2, at::kFloat);
  Trained<float> whole(spec, normal(101, 1, at::kFloat));
  Trained<float> parts(spec, normal(101, 1, at::kFloat));
  apply(spec, 1, 1, {}, whole.view(gradient));
  const SegmentView<float> all = parts.view(gradient);
  size_t begin = 0;
  for (const size_t count : {size_t{3}, size_t{50}, size_t{48}}) {
    SegmentView<float> part{all.parameter.subspan(begin, count), all.gradient.subspan(begin, count), {}, all.settings};
    for (const auto& moment : all.moments) part.moments.push_back(moment.subspan(begin, count));
    apply(spec, 1, 1, {}, part);
    begin += count;
  }
  EXPECT_TRUE(at::equal(whole.parameter, parts.parameter));
  for (size_t i = 0; i < whole.moments.size(); ++i) EXPECT_TRUE(at::equal(whole.moments[i], parts.moments[i])) << i;
}

/// Sets what a schedule may move.
void set_rates(torch::optim::OptimizerOptions& options, const OptimizerSpec& spec, const SegmentSettings& settings) {
  options.set_lr(settings.lr);
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) sgd->momentum(settings.momentum);
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) rmsprop->momentum(settings.momentum);
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) adam->betas({settings.momentum, spec.beta2});
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) adamw->betas({settings.momentum, spec.beta2});
}

TEST_P(OptimizerCase, FollowsTheMomentumAndRateOfEachStep) {
  const OptimizerSpec& spec = GetParam().spec;
  at::Tensor expected = normal(9, 1, at::kDouble).requires_grad_();
  Trained<double> found(spec, expected.detach().clone());
  const TorchOptimizer oracle = torch_optimizer(spec, {expected});
  for (int64_t step = 1; step <= 5; ++step) {
    if (found.settings.momentum != 0) found.settings.momentum = 0.95 - 0.01 * static_cast<double>(step);
    found.settings.lr = spec.lr * static_cast<double>(step);
    set_rates(oracle->param_groups()[0].options(), spec, found.settings);
    const at::Tensor gradient = normal(9, 100 + static_cast<uint64_t>(step), at::kDouble);
    expected.mutable_grad() = gradient;
    oracle->step();
    apply(spec, step, 1, {}, found.view(gradient));
  }
  EXPECT_LE(relative_difference(found.parameter, expected.detach()), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerCase, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

/// The spec of a stored case.
OptimizerSpec spec_of(const nlohmann::json& stored) {
  const std::map<std::string, Kind> kinds = {{"SGD", Kind::kSgd},
                                             {"Adam", Kind::kAdam},
                                             {"AdamW", Kind::kAdamW},
                                             {"RMSprop", Kind::kRmsprop},
                                             {"Adagrad", Kind::kAdagrad}};
  const nlohmann::json& options = stored.at("spec");
  OptimizerSpec spec;
  spec.kind = kinds.at(stored.at("kind"));
  spec.lr = options.at("lr");
  spec.weight_decay = options.value("weight_decay", spec.kind == Kind::kAdamW ? 0.01 : 0.0);
  spec.eps = spec.kind == Kind::kAdagrad ? 1e-10 : 1e-8;
  spec.momentum = options.value("momentum", spec.momentum);
  spec.dampening = options.value("dampening", spec.dampening);
  spec.nesterov = options.value("nesterov", spec.nesterov);
  spec.beta1 = options.value("beta1", spec.beta1);
  spec.beta2 = options.value("beta2", spec.beta2);
  spec.amsgrad = options.value("amsgrad", spec.amsgrad);
  spec.alpha = options.value("alpha", spec.alpha);
  spec.centered = options.value("centered", spec.centered);
  spec.lr_decay = options.value("lr_decay", spec.lr_decay);
  spec.initial_accumulator_value = options.value("initial_accumulator_value", spec.initial_accumulator_value);
  return spec;
}

at::Tensor wave(int64_t count, double phase) { return at::sin(0.7 * at::arange(0, count, at::kDouble) + phase); }

TEST(Optimizer, WithOneCycleFollowsPythonsTrajectories) {
  std::ifstream file(TUTTI_TEST_DATA "/train/optimizers.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_EQ(cases.size(), 12U);
  for (const auto& [name, stored] : cases.items()) {
    Trained<double> found(spec_of(stored), wave(13, 0));
    const ScheduleSpec schedule{.kind = ScheduleSpec::Kind::kOneCycle,
                                .cycle_momentum = stored.at("cycle_momentum").get<bool>()};
    for (int64_t step = 1; step <= 20; ++step) {
      const Rates rates = rates_at(schedule, found.spec.lr, step - 1, 0, 20, 1);
      found.settings.lr = rates.lr;
      if (rates.momentum) found.settings.momentum = *rates.momentum;
      apply(found.spec, step, 1, {}, found.view(wave(13, 1.3 * static_cast<double>(step))));
      const auto expected = stored.find("step" + std::to_string(step));
      if (expected == stored.end()) continue;
      EXPECT_LE(relative_difference(found.parameter, at::tensor(expected->get<std::vector<double>>(), at::kDouble)),
                1e-10)
          << name << ", step " << step;
    }
  }
}

TEST(Clipping, ByNormMatchesTorch) {
  for (const double max_norm : {0.01, 1.0, 1e6}) {
    const at::Tensor a = at::zeros({5000}, at::kDouble);
    const at::Tensor b = at::zeros({33}, at::kDouble);
    a.mutable_grad() = normal(5000, 1, at::kDouble);
    b.mutable_grad() = normal(33, 2, at::kDouble);
    const double squared = squared_norm(std::span<const double>(elements<double>(a.grad()))) +
                           squared_norm(std::span<const double>(elements<double>(b.grad())));
    const at::Tensor expected_before = a.grad().clone();
    const double expected_norm = torch::nn::utils::clip_grad_norm_(std::vector<at::Tensor>{a, b}, max_norm);
    EXPECT_NEAR(std::sqrt(squared), expected_norm, 1e-12 * expected_norm);
    const at::Tensor found = expected_before * clip_scale(std::sqrt(squared), max_norm);
    EXPECT_LE(relative_difference(found, a.grad()), 1e-10) << "max_norm " << max_norm;
  }
}

TEST(Clipping, ByValueActsOnTheScaledGradientAndMatchesTorch) {
  const at::Tensor gradient = normal(100, 1, at::kDouble) * 64;
  Trained<double> found({.lr = 1}, at::zeros({100}, at::kDouble));
  apply(found.spec, 1, 1.0 / 64, 0.25, found.view(gradient));
  const at::Tensor holder = at::zeros({100}, at::kDouble);
  holder.mutable_grad() = gradient / 64;
  torch::nn::utils::clip_grad_value_(std::vector<at::Tensor>{holder}, 0.25);
  EXPECT_TRUE(at::equal(found.parameter, -holder.grad()));
}

TEST(Clipping, KeepsNotANumber) {
  const at::Tensor gradient = at::full({3}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  Trained<double> found({.lr = 1}, at::zeros({3}, at::kDouble));
  apply(found.spec, 1, 1, 0.25, found.view(gradient));
  EXPECT_TRUE(found.parameter.isnan().all().item<bool>()) << found.parameter;
}

template <typename Element>
class SquaredNorm : public testing::Test {};
using ElementTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SquaredNorm, ElementTypes);

TYPED_TEST(SquaredNorm, MatchesTorchAndHasTheSameBitsAtEveryLevel) {
  for (const int64_t count : {0, 1, 15, 16, 17, 4095, 4096, 4097, 3 * 4096, 50000}) {
    const at::Tensor gradient = normal(count, 1, c10::CppTypeToScalarType<TypeParam>::value);
    const std::span<const TypeParam> span = elements<TypeParam>(gradient);
    const double expected = gradient.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(squared_norm(span), expected, 1e-12 * expected) << count;
    for (const SimdLevel level : simd_levels()) {
      EXPECT_EQ(std::bit_cast<uint64_t>(squared_norm_at(level, span)),
                std::bit_cast<uint64_t>(squared_norm_at(SimdLevel::kBaseline, span)))
          << count << " elements, level " << static_cast<int>(level);
    }
  }
}

TYPED_TEST(SquaredNorm, AddsChunksInABinaryTree) {
  constexpr int64_t kChunk = 4096;
  const at::Tensor gradient = normal(7 * kChunk, 3, c10::CppTypeToScalarType<TypeParam>::value);
  const std::span<const TypeParam> all = elements<TypeParam>(gradient);
  const auto chunk = [&](size_t i) { return squared_norm(all.subspan(i * kChunk, kChunk)); };
  const double expected = ((chunk(0) + chunk(1)) + (chunk(2) + chunk(3))) + ((chunk(4) + chunk(5)) + chunk(6));
  EXPECT_EQ(squared_norm(all), expected);
}

TYPED_TEST(SquaredNorm, IsNonFiniteWhenAnElementIs) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    for (const int64_t position : {0, 4100, 9999}) {
      const at::Tensor gradient = at::zeros({10000}, c10::CppTypeToScalarType<TypeParam>::value);
      gradient[position] = bad;
      EXPECT_FALSE(std::isfinite(squared_norm(std::span<const TypeParam>(elements<TypeParam>(gradient)))))
          << bad << " at " << position;
    }
  }
}

TEST(Apply, RefusesLengthsThatDoNotFit) {
  Trained<float> trained({.kind = Kind::kAdam}, at::zeros({4}));
  const at::Tensor gradient = at::zeros({4});
  EXPECT_THROW(apply(trained.spec, 1, 1, {}, trained.view(at::zeros({3}))), std::invalid_argument);
  EXPECT_THROW(apply(trained.spec, 0, 1, {}, trained.view(gradient)), std::invalid_argument);
  SegmentView<float> segment = trained.view(gradient);
  segment.moments.pop_back();
  EXPECT_THROW(apply(trained.spec, 1, 1, {}, segment), std::invalid_argument);
}

TEST(OptimizerSpec, NamesItsMomentsAsTorchDoes) {
  using testing::ElementsAre;
  EXPECT_THAT((OptimizerSpec{.momentum = 0.9}.moment_names()), ElementsAre("momentum_buffer"));
  EXPECT_THAT((OptimizerSpec{.kind = Kind::kAdam, .amsgrad = true}.moment_names()),
              ElementsAre("exp_avg", "exp_avg_sq", "max_exp_avg_sq"));
  EXPECT_THAT((OptimizerSpec{.kind = Kind::kRmsprop, .momentum = 0.9, .centered = true}.moment_names()),
              ElementsAre("square_avg", "momentum_buffer", "grad_avg"));
  EXPECT_THAT((OptimizerSpec{.kind = Kind::kAdagrad}.moment_names()), ElementsAre("sum"));
}

}  // namespace
}  // namespace tutti::train
