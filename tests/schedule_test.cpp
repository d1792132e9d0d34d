// Schedules against trajectories of PyTorch's lr_scheduler (tests/pytorch/make_trajectories.py).
#include "src/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti::train {
namespace {

using Json = nlohmann::json;
using Kind = ScheduleSpec::Kind;

Json stored() {
  std::ifstream file(TUTTI_TEST_DATA "/train/schedules.json");
  return Json::parse(file);
}

template <typename Value>
void read_field(const Json& json, const char* key, Value& value) {
  if (json.contains(key)) value = json.at(key).get<Value>();
}

ScheduleSpec spec_of(const Json& json) {
  const std::map<std::string, Kind> kinds = {
      {"constant", Kind::kConstant},     {"step", Kind::kStep},
      {"multi_step", Kind::kMultiStep},  {"exponential", Kind::kExponential},
      {"polynomial", Kind::kPolynomial}, {"cosine", Kind::kCosine},
      {"one_cycle", Kind::kOneCycle},    {"cosine_restarts", Kind::kCosineRestarts},
      {"plateau", Kind::kPlateau},
  };
  ScheduleSpec spec;
  spec.kind = kinds.at(json.at("kind"));
  read_field(json, "warmup_steps", spec.warmup_steps);
  read_field(json, "warmup_start", spec.warmup_start);
  read_field(json, "step_size", spec.step_size);
  read_field(json, "milestones", spec.milestones);
  read_field(json, "gamma", spec.gamma);
  read_field(json, "power", spec.power);
  read_field(json, "total", spec.total);
  read_field(json, "min_lr", spec.min_lr);
  read_field(json, "restart_period", spec.restart_period);
  read_field(json, "restart_factor", spec.restart_factor);
  read_field(json, "max_lr", spec.max_lr);
  read_field(json, "pct_start", spec.pct_start);
  read_field(json, "div_factor", spec.div_factor);
  read_field(json, "final_div_factor", spec.final_div_factor);
  read_field(json, "base_momentum", spec.base_momentum);
  read_field(json, "max_momentum", spec.max_momentum);
  read_field(json, "cycle_momentum", spec.cycle_momentum);
  read_field(json, "three_phase", spec.three_phase);
  read_field(json, "cosine_anneal", spec.cosine_anneal);
  read_field(json, "factor", spec.factor);
  read_field(json, "patience", spec.patience);
  read_field(json, "cooldown", spec.cooldown);
  read_field(json, "threshold", spec.threshold);
  read_field(json, "threshold_relative", spec.threshold_relative);
  read_field(json, "greater_is_better", spec.greater_is_better);
  return spec;
}

TEST(Schedule, FollowsTorchForSixtySteps) {
  const Json data = stored();
  const double base_lr = data.at("base_lr");
  ASSERT_EQ(data.at("schedules").size(), 19U);
  for (const auto& [name, trajectory] : data.at("schedules").items()) {
    const ScheduleSpec spec = spec_of(trajectory.at("spec"));
    const std::vector<double> lr = trajectory.at("lr");
    ASSERT_EQ(lr.size(), 60U);
    for (int64_t step = 0; step < 60; ++step) {
      const Rates found = rates_at(spec, base_lr, step, 0, 60, 1);
      EXPECT_NEAR(found.lr, lr[static_cast<size_t>(step)], 1e-12) << name << ", step " << step;
      EXPECT_EQ(found.momentum.has_value(), trajectory.contains("momentum")) << name;
      if (found.momentum) {
        EXPECT_NEAR(*found.momentum, trajectory["momentum"][step], 1e-12) << name << ", step " << step;
      }
    }
  }
}

TEST(Schedule, CountsEpochsWhenAsked) {
  const Json data = stored();
  for (const char* name : {"step", "cosine", "one_cycle"}) {
    const Json& trajectory = data.at("schedules").at(name);
    ScheduleSpec spec = spec_of(trajectory.at("spec"));
    spec.per_epoch = true;
    for (int64_t epoch = 0; epoch < 60; ++epoch) {
      const double expected = trajectory.at("lr").at(epoch);
      EXPECT_NEAR(rates_at(spec, 0.1, epoch * 10, epoch, 600, 60).lr, expected, 1e-12) << name << ", epoch " << epoch;
      EXPECT_NEAR(rates_at(spec, 0.1, epoch * 10 + 9, epoch, 600, 60).lr, expected, 1e-12)
          << name << ", epoch " << epoch;
    }
  }
}

TEST(Schedule, WarmsUpFromZeroInEqualSteps) {
  const ScheduleSpec spec{.kind = Kind::kCosine, .warmup_steps = 4};
  for (int64_t step = 0; step <= 4; ++step) {
    EXPECT_DOUBLE_EQ(rates_at(spec, 0.8, step, 0, 100, 1).lr, 0.2 * static_cast<double>(step)) << step;
  }
}

TEST(Schedule, StaysFiniteAtItsEdges) {
  for (const Kind kind : {Kind::kPolynomial, Kind::kCosine, Kind::kOneCycle, Kind::kCosineRestarts}) {
    for (const int64_t total : {1, 2, 3, 10}) {
      for (const double pct_start : {0.0, 0.1, 0.5, 1.0}) {
        const ScheduleSpec spec{.kind = kind, .warmup_steps = 1, .total = total, .pct_start = pct_start};
        for (int64_t step = 0; step < 15; ++step) {
          const double lr = rates_at(spec, 0.5, step, 0, 10, 1).lr;
          EXPECT_TRUE(std::isfinite(lr) && lr >= 0 && lr <= 0.5)
              << lr << " for kind " << static_cast<int>(kind) << ", total " << total << ", pct_start " << pct_start
              << ", step " << step;
        }
      }
    }
  }
}

TEST(Plateau, FollowsTorch) {
  const Json data = stored();
  const double base_lr = data.at("base_lr");
  for (const auto& [name, trajectory] : data.at("plateaus").items()) {
    const ScheduleSpec spec = spec_of(trajectory.at("spec"));
    PlateauState state;
    EXPECT_EQ(rates_at(spec, base_lr, 0, 0, 60, 1, state.lr).lr, base_lr);
    for (size_t i = 0; i < trajectory.at("values").size(); ++i) {
      state.observe(spec, base_lr, trajectory.at("values").at(i));
      EXPECT_NEAR(rates_at(spec, base_lr, 1, 0, 60, 1, state.lr).lr, trajectory.at("lr").at(i), 1e-12)
          << name << ", observation " << i;
    }
    EXPECT_LT(*state.lr, base_lr) << name << " never reduced its rate: the trajectory proves nothing";
  }
}

TEST(Plateau, TakesNotANumberAsNoImprovement) {
  const ScheduleSpec spec{.kind = Kind::kPlateau, .patience = 1};
  PlateauState state;
  for (int i = 0; i < 2; ++i) state.observe(spec, 1.0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(state.best.has_value());
  EXPECT_DOUBLE_EQ(*state.lr, 0.1);
}

}  // namespace
}  // namespace tutti::train
