// First values of parameters and buffers, from the model's own random stream.
#include "src/graph/initialise.h"

#include <ATen/Dispatch.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "data/philox.h"

namespace tutti::graph {
namespace {

/// Two numbers of a parameter's stream, in [0, 1).
std::array<double, 2> uniform_pair(data::RandomKey key, int64_t index, int64_t pair) {
  const auto low = static_cast<uint64_t>(pair);
  const auto high = static_cast<uint64_t>(index);
  const data::PhiloxWords words = data::philox(key, {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                                                     static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)});
  return {data::uniform_double(words[0], words[1]), data::uniform_double(words[2], words[3])};
}

std::array<double, 2> normal_pair(const std::array<double, 2>& uniform) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform[0]));  // 1 - u lies in (0, 1]
  const double angle = 2 * std::numbers::pi * uniform[1];
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::array<double, 2> draw(const Initialisation& initialisation, data::RandomKey key, int64_t index, int64_t pair) {
  std::array<double, 2> drawn = uniform_pair(key, index, pair);
  if (initialisation.kind == Initialisation::Kind::kNormal) drawn = normal_pair(drawn);
  const double scale = initialisation.kind == Initialisation::Kind::kNormal ? initialisation.high
                                                                            : initialisation.high - initialisation.low;
  return {initialisation.low + scale * drawn[0], initialisation.low + scale * drawn[1]};
}

template <typename Number>
void fill(const Initialisation& initialisation, data::RandomKey key, int64_t index, std::span<Number> numbers) {
  for (size_t i = 0; i < numbers.size(); i += 2) {
    const std::array<double, 2> drawn = draw(initialisation, key, index, static_cast<int64_t>(i / 2));
    numbers[i] = static_cast<Number>(drawn[0]);
    if (i + 1 < numbers.size()) numbers[i + 1] = static_cast<Number>(drawn[1]);
  }
}

}  // namespace

Initialisation fan_in_uniform(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return {Initialisation::Kind::kUniform, -bound, bound};
}

void initialise(const Parameter& parameter, int64_t index, uint64_t seed, at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  if (parameter.initial) {
    if (parameter.initial->sizes() != tensor.sizes()) {
      throw GraphError(fmt::format("parameter {}: expected given values of shape {}, found {}", parameter.name,
                                   c10::str(tensor.sizes()), c10::str(parameter.initial->sizes())));
    }
    tensor.copy_(*parameter.initial);
    return;
  }
  const Initialisation& initialisation = parameter.initialisation;
  if (initialisation.kind == Initialisation::Kind::kConstant) {
    tensor.fill_(initialisation.low);
  } else {
    TORCH_CHECK(tensor.is_contiguous(), "initialise: expected a contiguous tensor for parameter ", parameter.name);
    const data::RandomKey key = data::RandomKey::of(seed, "init");
    AT_DISPATCH_FLOATING_TYPES(tensor.scalar_type(), "initialise", [&] {
      fill(initialisation, key, index,
           std::span(tensor.mutable_data_ptr<scalar_t>(), static_cast<size_t>(tensor.numel())));
    });
  }
  if (initialisation.zero_row >= 0) tensor.select(0, initialisation.zero_row).zero_();
}

}  // namespace tutti::graph
