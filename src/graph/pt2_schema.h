// What torch.export's schema calls by its own numbers: types, layouts, memory formats, and the description of a tensor.
#ifndef TUTTI_SRC_GRAPH_PT2_SCHEMA_H
#define TUTTI_SRC_GRAPH_PT2_SCHEMA_H

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti::graph {

/// A size that is known, or an expression of symbols with its value for the example that the model was exported with.
struct Pt2Size {
  std::optional<int64_t> known;
  std::string expression;
  std::optional<int64_t> hint;
};

struct Pt2TensorMeta {
  at::ScalarType type = at::kFloat;
  std::vector<Pt2Size> sizes;
  std::vector<Pt2Size> strides;
  Pt2Size storage_offset;
  bool requires_grad = false;
};

/// Each throws GraphError for a number that the schema (major version 8) does not have or that Tutti cannot hold.
at::ScalarType scalar_type_of(int64_t schema_number);
at::MemoryFormat memory_format_of(int64_t schema_number);
at::Layout layout_of(int64_t schema_number);
Pt2TensorMeta tensor_meta_of(const nlohmann::json& meta);

}  // namespace tutti::graph

#endif
