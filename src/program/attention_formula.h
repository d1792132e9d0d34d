// What scaled dot product attention computes, by calls that autograd can differentiate.
#ifndef TUTTI_SRC_PROGRAM_ATTENTION_FORMULA_H
#define TUTTI_SRC_PROGRAM_ATTENTION_FORMULA_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/graph/graph.h"
#include "src/program/dropout.h"

namespace tutti::program {

/// True where the node is an aten::scaled_dot_product_attention that AttentionFormula knows: all tensors have one type,
/// query, key and value the same leading dimensions (heads aside, where enable_gqa is set), and the mask enlarges
/// nothing.
bool has_attention_formula(const graph::Graph& graph, const graph::Node& node);

/// softmax(query × keyᵀ × scale + mask), with dropout, × value (Vaswani et al., "Attention Is All You Need", 2017). A
/// place of the query that may look nowhere gets zeros.
class AttentionFormula {
 public:
  /// Throws graph::GraphError as dropout_site does.
  AttentionFormula(const graph::Graph& graph, const graph::Node& node, int64_t node_index);

  struct Result {
    at::Tensor output;         ///< [..., heads, places, channels]
    at::Tensor probabilities;  ///< [..., heads, places, key places], before dropout
    at::Tensor kept;           ///< by dropout, a byte each; not defined without
  };
  /// `values` by ValueId. Dropout works in training only.
  Result operator()(std::span<const at::Tensor> values, const RandomPosition& position, bool training) const;

  bool has_dropout() const { return site_.probability > 0; }
  /// probabilities × kept / (1 - p).
  at::Tensor after_dropout(const at::Tensor& probabilities, const at::Tensor& kept) const;
  double scale() const { return scale_; }
  /// Key or value with each of its heads repeated for a group of the query's heads.
  at::Tensor with_all_heads(const at::Tensor& tensor) const;
  /// The gradient of a key or value, given that of with_all_heads.
  at::Tensor with_own_heads(const at::Tensor& gradient) const;

  /// Of the probabilities, with kBatch where the batch is.
  const std::vector<int64_t>& probabilities_shape() const { return probabilities_shape_; }

 private:
  at::Tensor scores(std::span<const at::Tensor> values) const;

  graph::ValueId query_, key_, value_, mask_;
  bool is_causal_;
  double scale_;
  int64_t group_ = 1;  ///< heads of the query for each of the key
  std::vector<int64_t> probabilities_shape_;
  DropoutSite site_;
};

}  // namespace tutti::program

#endif
