// What each optimizer keeps, and the checked entrance to its loops.
#include "src/train/optimizer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "src/train/optimizer_kernels.h"

namespace tutti::train {

std::vector<std::string> OptimizerSpec::moment_names() const {
  std::vector<std::string> names;
  switch (kind) {
    case Kind::kSgd:
      if (momentum != 0) names = {"momentum_buffer"};
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
      names = {"exp_avg", "exp_avg_sq"};
      if (amsgrad) names.emplace_back("max_exp_avg_sq");
      break;
    case Kind::kRmsprop:
      names = {"square_avg"};
      if (momentum > 0) names.emplace_back("momentum_buffer");
      if (centered) names.emplace_back("grad_avg");
      break;
    case Kind::kAdagrad:
      names = {"sum"};
      break;
  }
  return names;
}

int OptimizerSpec::moment_count() const { return static_cast<int>(moment_names().size()); }

double OptimizerSpec::initial_moment(int /*moment*/) const {
  return kind == Kind::kAdagrad ? initial_accumulator_value : 0;
}

namespace {

void check_length(const char* what, size_t found, size_t expected) {
  if (found == expected) return;
  throw std::invalid_argument(
      fmt::format("optimizer: expected {} of {} elements, as long as the parameter, found {}", what, expected, found));
}

template <typename Element>
void check_segment(const OptimizerSpec& spec, int64_t step, const SegmentView<Element>& segment) {
  if (step < 1) throw std::invalid_argument(fmt::format("optimizer: expected a step of 1 or more, found {}", step));
  check_length("a gradient", segment.gradient.size(), segment.parameter.size());
  const auto moment_count = static_cast<size_t>(spec.moment_count());
  if (segment.moments.size() != moment_count) {
    throw std::invalid_argument(
        fmt::format("optimizer: expected {} moments, found {}", moment_count, segment.moments.size()));
  }
  for (const auto& moment : segment.moments) check_length("a moment", moment.size(), segment.parameter.size());
}

}  // namespace

template <typename Element>
void apply(const OptimizerSpec& spec, int64_t step, double gradient_scale, std::optional<double> clip_value,
           const SegmentView<Element>& segment) {
  check_segment(spec, step, segment);
  apply_at(best_simd_level(), spec, step, gradient_scale, clip_value, segment);
}

template void apply(const OptimizerSpec&, int64_t, double, std::optional<double>, const SegmentView<float>&);
template void apply(const OptimizerSpec&, int64_t, double, std::optional<double>, const SegmentView<double>&);

}  // namespace tutti::train
