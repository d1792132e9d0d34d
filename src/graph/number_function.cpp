// The table of functions of numbers.
#include "src/graph/number_function.h"

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

namespace tutti::graph {
namespace {

using c10::IValue;
using Arguments = std::span<const IValue>;

bool is_float(const IValue& number) { return number.isDouble(); }
int64_t integer(const IValue& number) { return number.isBool() ? number.toBool() : number.toInt(); }
double real(const IValue& number) {
  return is_float(number) ? number.toDouble() : static_cast<double>(integer(number));
}
bool truth(const IValue& number) { return real(number) != 0; }

int64_t checked(bool has_overflowed, int64_t result) {
  if (has_overflowed) throw std::domain_error("the result is beyond 64 bits");
  return result;
}

int64_t checked_integer(double number) {
  constexpr double kLimit = 9223372036854775808.0;
  if (!(number >= -kLimit && number < kLimit)) throw std::domain_error("the result is beyond 64 bits");
  return static_cast<int64_t>(number);
}

int64_t add(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool has_overflowed = __builtin_add_overflow(a, b, &result);
  return checked(has_overflowed, result);
}
int64_t subtract(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool has_overflowed = __builtin_sub_overflow(a, b, &result);
  return checked(has_overflowed, result);
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool has_overflowed = __builtin_mul_overflow(a, b, &result);
  return checked(has_overflowed, result);
}

void check_divisor(const IValue& divisor) {
  if (!truth(divisor)) throw std::domain_error("division by zero");
}
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return subtract(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t power(int64_t base, int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = multiply(result, base);
  return result;
}

/// An operation that keeps integers integers.
template <auto integers, auto reals>
IValue arithmetic(Arguments in) {
  if (is_float(in[0]) || is_float(in[1])) return static_cast<double>(reals(real(in[0]), real(in[1])));
  return integers(integer(in[0]), integer(in[1]));
}

template <auto compare>
IValue comparison(Arguments in) {
  if (is_float(in[0]) || is_float(in[1])) return static_cast<bool>(compare(real(in[0]), real(in[1])));
  return static_cast<bool>(compare(integer(in[0]), integer(in[1])));
}

template <auto combine>
IValue bitwise(Arguments in) {
  if (in[0].isBool() && in[1].isBool()) return static_cast<bool>(combine(in[0].toBool(), in[1].toBool()));
  return int64_t{combine(integer(in[0]), integer(in[1]))};
}

/// A rounding from a real number to an integer.
template <auto rounded>
IValue rounding(Arguments in) {
  return is_float(in[0]) ? checked_integer(rounded(in[0].toDouble())) : integer(in[0]);
}

double real_modulo(double a, double b) { return a - std::floor(a / b) * b; }

IValue floordiv(Arguments in) {
  check_divisor(in[1]);
  return arithmetic<floor_divide, [](double a, double b) { return std::floor(a / b); }>(in);
}
IValue modulo(Arguments in) {
  check_divisor(in[1]);
  return arithmetic<[](int64_t a, int64_t b) { return b == -1 ? 0 : a - floor_divide(a, b) * b; }, real_modulo>(in);
}
IValue truediv(Arguments in) {
  check_divisor(in[1]);
  return real(in[0]) / real(in[1]);
}
IValue pow(Arguments in) {
  const bool is_real = is_float(in[0]) || is_float(in[1]) || integer(in[1]) < 0;
  if (is_real) return std::pow(real(in[0]), real(in[1]));
  return power(integer(in[0]), integer(in[1]));
}
IValue negate(Arguments in) {
  return is_float(in[0]) ? IValue(-in[0].toDouble()) : IValue(subtract(0, integer(in[0])));
}
IValue shift_left(Arguments in) { return multiply(integer(in[0]), power(2, integer(in[1]))); }
IValue shift_right(Arguments in) { return floor_divide(integer(in[0]), power(2, integer(in[1]))); }

constexpr auto kTruncate = [](double x) { return std::trunc(x); };

constexpr std::array kFunctions{
    NumberFunction{"_operator::add", 2, arithmetic<add, std::plus<>{}>},
    NumberFunction{"_operator::sub", 2, arithmetic<subtract, std::minus<>{}>},
    NumberFunction{"_operator::mul", 2, arithmetic<multiply, std::multiplies<>{}>},
    NumberFunction{"_operator::floordiv", 2, floordiv},
    NumberFunction{"_operator::truediv", 2, truediv},
    NumberFunction{"_operator::mod", 2, modulo},
    NumberFunction{"_operator::pow", 2, pow},
    NumberFunction{"_operator::neg", 1, negate},
    NumberFunction{"_operator::pos", 1, [](Arguments in) { return in[0]; }},
    NumberFunction{"_operator::lshift", 2, shift_left},
    NumberFunction{"_operator::rshift", 2, shift_right},
    NumberFunction{"_operator::eq", 2, comparison<std::equal_to<>{}>},
    NumberFunction{"_operator::ne", 2, comparison<std::not_equal_to<>{}>},
    NumberFunction{"_operator::lt", 2, comparison<std::less<>{}>},
    NumberFunction{"_operator::le", 2, comparison<std::less_equal<>{}>},
    NumberFunction{"_operator::gt", 2, comparison<std::greater<>{}>},
    NumberFunction{"_operator::ge", 2, comparison<std::greater_equal<>{}>},
    NumberFunction{"_operator::and_", 2, bitwise<std::bit_and<>{}>},
    NumberFunction{"_operator::or_", 2, bitwise<std::bit_or<>{}>},
    NumberFunction{"math::trunc", 1, rounding<kTruncate>},
    NumberFunction{"math::ceil", 1, rounding<[](double x) { return std::ceil(x); }>},
    NumberFunction{"math::floor", 1, rounding<[](double x) { return std::floor(x); }>},
    NumberFunction{"torch::sym_int", 1, rounding<kTruncate>},
    NumberFunction{"torch::sym_float", 1, [](Arguments in) { return IValue(real(in[0])); }},
    NumberFunction{"torch::sym_not", 1, [](Arguments in) { return IValue(!truth(in[0])); }},
    NumberFunction{"torch::sym_max", 2, [](Arguments in) { return real(in[1]) > real(in[0]) ? in[1] : in[0]; }},
    NumberFunction{"torch::sym_min", 2, [](Arguments in) { return real(in[1]) < real(in[0]) ? in[1] : in[0]; }},
    NumberFunction{"torch::sym_ite", 3, [](Arguments in) { return truth(in[0]) ? in[1] : in[2]; }},
    NumberFunction{"torch::sym_sqrt", 1, [](Arguments in) { return IValue(std::sqrt(real(in[0]))); }},
};

}  // namespace

const NumberFunction* NumberFunction::find(std::string_view target) {
  for (const NumberFunction& function : kFunctions) {
    if (function.target == target) return &function;
  }
  return nullptr;
}

}  // namespace tutti::graph
