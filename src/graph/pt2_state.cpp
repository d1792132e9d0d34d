// Tied weights are found by their place in the archive.
#include "src/graph/pt2_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::graph {
namespace {

bool is_same_tensor(const Pt2Weight& left, const Pt2Weight& right) {
  return left.path == right.path && left.tensor.scalar_type() == right.tensor.scalar_type() &&
         left.tensor.sizes() == right.tensor.sizes() && left.tensor.strides() == right.tensor.strides() &&
         left.tensor.storage_offset() == right.tensor.storage_offset();
}

/// True where two different tensors of one storage may have elements in common.
bool may_overlap(const Pt2Weight& left, const Pt2Weight& right) {
  if (left.path != right.path) return false;
  const auto extent = [](const at::Tensor& tensor) {
    int64_t last = tensor.storage_offset();
    for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    return std::pair(tensor.storage_offset() * tensor.element_size(), (last + 1) * tensor.element_size());
  };
  if (left.tensor.numel() == 0 || right.tensor.numel() == 0) return false;
  const auto [left_begin, left_end] = extent(left.tensor);
  const auto [right_begin, right_end] = extent(right.tensor);
  return left_begin < right_end && right_begin < left_end;
}

template <typename List>
typename List::value_type& named(List& list, ValueId id, const Pt2Weight& weight) {
  const auto found = std::find_if(list.begin(), list.end(), [id](const auto& entry) { return entry.value == id; });
  if (found == list.end()) {
    throw GraphError(
        fmt::format("'{}' shares its memory with a tensor of another kind (a parameter and a buffer)", weight.name));
  }
  return *found;
}

}  // namespace

Pt2State::Pt2State(Graph& graph, const std::vector<Pt2Weight>& weights, const std::vector<Pt2Weight>& constants)
    : graph_(graph) {
  for (const Pt2Weight& weight : weights) weights_.emplace(std::pair(true, weight.name), &weight);
  for (const Pt2Weight& weight : constants) weights_.emplace(std::pair(false, weight.name), &weight);
}

const Pt2Weight& Pt2State::weight(const std::string& name, bool is_saved) const {
  const auto found = weights_.find({is_saved, name});
  if (found == weights_.end()) {
    throw GraphError(fmt::format("'{}' has no entry among the archive's {}", name, is_saved ? "weights" : "constants"));
  }
  return *found->second;
}

ValueId Pt2State::known_value(const Pt2Weight& weight) const {
  for (const auto& [other, id] : bound_) {
    if (is_same_tensor(*other, weight)) return id;
    if (may_overlap(*other, weight)) {
      throw GraphError(
          fmt::format("'{}' and '{}' are different views of the same memory, which cannot be trained "
                      "apart. Give each its own tensor (clone) before the export.",
                      other->name, weight.name));
    }
  }
  return kNoValue;
}

ValueId Pt2State::add_value(ValueKind kind, const Pt2Weight& weight) {
  graph_.values.push_back({kind, weight.name, weight.tensor.scalar_type(), weight.tensor.sizes().vec()});
  const ValueId id = std::ssize(graph_.values) - 1;
  bound_.emplace_back(&weight, id);
  return id;
}

ValueId Pt2State::parameter(const std::string& name) {
  const Pt2Weight& weight = this->weight(name, /*is_saved=*/true);
  const ValueId known = known_value(weight);
  if (known != kNoValue) {
    named(graph_.parameters, known, weight).other_names.push_back(weight.name);
    return known;
  }
  if (weight.tensor.scalar_type() != at::kFloat) {
    throw GraphError(
        fmt::format("parameter '{}' is {}, expected float32. Export the model in float32; the job file's "
                    "precision says what it is trained in.",
                    weight.name, c10::toString(weight.tensor.scalar_type())));
  }
  const ValueId id = add_value(ValueKind::kParameter, weight);
  Parameter parameter;
  parameter.value = id;
  parameter.name = weight.name;
  parameter.initial = weight.tensor;
  parameter.trainable = weight.requires_grad;
  graph_.parameters.push_back(std::move(parameter));
  return id;
}

ValueId Pt2State::buffer(const std::string& name, bool persistent) {
  const Pt2Weight& weight = this->weight(name, persistent);
  const ValueId known = known_value(weight);
  if (known != kNoValue) {
    named(graph_.buffers, known, weight).other_names.push_back(weight.name);
    return known;
  }
  const ValueId id = add_value(ValueKind::kBuffer, weight);
  Buffer buffer;
  buffer.value = id;
  buffer.name = weight.name;
  buffer.initial = weight.tensor;
  buffer.persistent = persistent;
  graph_.buffers.push_back(std::move(buffer));
  return id;
}

ValueId Pt2State::constant(const std::string& name) {
  const Pt2Weight& weight = this->weight(name, /*is_saved=*/false);
  const ValueId known = known_value(weight);
  if (known != kNoValue) {
    named(graph_.constants, known, weight);
    return known;
  }
  const ValueId id = add_value(ValueKind::kConstant, weight);
  graph_.constants.push_back({id, weight.tensor});
  return id;
}

}  // namespace tutti::graph
