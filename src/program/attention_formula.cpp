// Attention forward.
#include "src/program/attention_formula.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/program/value_type.h"

namespace tutti::program {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Positions of the node's arguments.
enum Position : size_t { kQuery, kKey, kValue, kMask, kProbability, kIsCausal, kScale, kGrouped };

graph::ValueId optional_value(const graph::Argument& argument) {
  return argument.ids.empty() ? graph::kNoValue : argument.ids.front();
}

std::vector<int64_t> shape_of_probabilities(const graph::Graph& graph, const graph::Node& node) {
  std::vector<int64_t> shape = graph.values[node.arguments[kQuery].ids.front()].shape;
  const std::vector<int64_t>& key = graph.values[node.arguments[kKey].ids.front()].shape;
  shape.back() = key[key.size() - 2];
  return shape;
}

/// True where `shape` can be broadcast to `to`.
bool fits_in(const std::vector<int64_t>& shape, const std::vector<int64_t>& to) {
  if (shape.size() > to.size()) return false;
  return std::equal(shape.rbegin(), shape.rend(), to.rbegin(),
                    [](int64_t own, int64_t other) { return own == 1 || own == other; });
}

}  // namespace

bool has_attention_formula(const graph::Graph& graph, const graph::Node& node) {
  const auto shape = [&](size_t position) { return graph.values[node.arguments[position].ids.front()].shape; };
  if (node.target != "aten::scaled_dot_product_attention" || !has_one_real_type(graph, node)) return false;
  std::vector<int64_t> query = shape(kQuery), key = shape(kKey), value = shape(kValue);
  const bool is_grouped = node.arguments[kGrouped].constant.toBool();
  if (query.size() != key.size() || key.size() != value.size() || query.size() < (is_grouped ? 3 : 2)) return false;
  std::vector<int64_t> probabilities = query;
  probabilities.back() = key[key.size() - 2];
  const bool has_mask = node.arguments[kMask].kind == graph::Argument::Kind::kValue;
  if (has_mask && (node.arguments[kIsCausal].constant.toBool() || !fits_in(shape(kMask), probabilities))) return false;
  for (std::vector<int64_t>* leading : {&query, &key, &value}) leading->resize(leading->size() - (is_grouped ? 3 : 2));
  return query == key && key == value;
}

AttentionFormula::AttentionFormula(const graph::Graph& graph, const graph::Node& node, int64_t node_index)
    : query_(node.arguments[kQuery].ids.front()),
      key_(node.arguments[kKey].ids.front()),
      value_(node.arguments[kValue].ids.front()),
      mask_(optional_value(node.arguments[kMask])),
      is_causal_(node.arguments[kIsCausal].constant.toBool()),
      probabilities_shape_(shape_of_probabilities(graph, node)),
      site_(dropout_site(node, node_index, kProbability, probabilities_shape_)) {
  const std::vector<int64_t>&query = graph.values[query_].shape, &key = graph.values[key_].shape;
  const c10::IValue& scale = node.arguments[kScale].constant;
  scale_ = scale.isNone() ? 1 / std::sqrt(static_cast<double>(query.back())) : scale.toScalar().toDouble();
  if (node.arguments[kGrouped].constant.toBool()) group_ = query[query.size() - 3] / key[key.size() - 3];
}

at::Tensor AttentionFormula::with_all_heads(const at::Tensor& tensor) const {
  if (group_ == 1) return tensor;
  at::DimVector shape(tensor.sizes());
  shape.insert(shape.end() - 2, group_);
  return tensor.unsqueeze(-3).expand(shape).flatten(-4, -3);
}

at::Tensor AttentionFormula::with_own_heads(const at::Tensor& gradient) const {
  return group_ == 1 ? gradient : gradient.unflatten(-3, {-1, group_}).sum(-3);
}

at::Tensor AttentionFormula::scores(std::span<const at::Tensor> values) const {
  const at::Tensor key = with_all_heads(values[key_]);
  at::Tensor scores = at::matmul(values[query_], key.transpose(-2, -1)).mul_(scale_);
  if (is_causal_) {
    const at::Tensor is_later =
        at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).triu_(1);
    scores.masked_fill_(is_later, kMinusInfinity);
  }
  if (mask_ == graph::kNoValue) return scores;
  const at::Tensor& mask = values[mask_];
  return mask.scalar_type() == at::kBool ? scores.masked_fill_(at::logical_not(mask), kMinusInfinity)
                                         : scores.add_(mask);
}

at::Tensor AttentionFormula::after_dropout(const at::Tensor& probabilities, const at::Tensor& kept) const {
  return at::mul(probabilities, kept).mul_(site_.scale());
}

AttentionFormula::Result AttentionFormula::operator()(std::span<const at::Tensor> values,
                                                      const RandomPosition& position, bool training) const {
  Result result;
  result.probabilities =
      mask_ == graph::kNoValue ? at::softmax(scores(values), -1) : at::_safe_softmax(scores(values), -1);
  const at::Tensor value = with_all_heads(values[value_]);
  if (!training || !has_dropout()) {
    result.output = at::matmul(result.probabilities, value);
    return result;
  }
  result.kept = draw_kept(result.probabilities.sizes(), position, site_);
  result.output = at::matmul(after_dropout(result.probabilities, result.kept), value);
  return result;
}

}  // namespace tutti::program
