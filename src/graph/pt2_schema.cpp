// Tables of the schema's numbers.
#include "src/graph/pt2_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "src/graph/bounded_json.h"
#include "src/graph/graph.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

Pt2Size size_of(const Json& size) {
  Pt2Size result;
  if (size.contains("as_int")) {
    result.known = integer_of(size.at("as_int"));
    return result;
  }
  const Json& expression = size.at("as_expr");
  result.expression = expression.at("expr_str").get<std::string>();
  const auto hint = expression.find("hint");
  if (hint != expression.end() && hint->is_object() && hint->contains("as_int")) {
    result.hint = integer_of(hint->at("as_int"));
  }
  return result;
}

std::vector<Pt2Size> sizes_of(const Json& sizes) {
  std::vector<Pt2Size> result;
  for (const Json& size : sizes) result.push_back(size_of(size));
  return result;
}

}  // namespace

at::ScalarType scalar_type_of(int64_t schema_number) {
  static constexpr std::pair<int64_t, at::ScalarType> kTypes[] = {{1, at::kByte},
                                                                  {2, at::kChar},
                                                                  {3, at::kShort},
                                                                  {4, at::kInt},
                                                                  {5, at::kLong},
                                                                  {6, at::kHalf},
                                                                  {7, at::kFloat},
                                                                  {8, at::kDouble},
                                                                  {9, at::kComplexHalf},
                                                                  {10, at::kComplexFloat},
                                                                  {11, at::kComplexDouble},
                                                                  {12, at::kBool},
                                                                  {13, at::kBFloat16},
                                                                  {28, at::kUInt16},
                                                                  {29, at::kFloat8_e4m3fn},
                                                                  {30, at::kFloat8_e5m2},
                                                                  {31, at::kFloat8_e4m3fnuz},
                                                                  {32, at::kFloat8_e5m2fnuz}};
  for (const auto& [number, type] : kTypes) {
    if (number == schema_number) return type;
  }
  throw GraphError(fmt::format("expected a scalar type of the schema, found number {}", schema_number));
}

at::MemoryFormat memory_format_of(int64_t schema_number) {
  switch (schema_number) {
    case 1:
      return at::MemoryFormat::Contiguous;
    case 2:
      return at::MemoryFormat::ChannelsLast;
    case 3:
      return at::MemoryFormat::ChannelsLast3d;
    case 4:
      return at::MemoryFormat::Preserve;
    default:
      throw GraphError(fmt::format("expected a memory format of the schema, found number {}", schema_number));
  }
}

at::Layout layout_of(int64_t schema_number) {
  constexpr int64_t kStrided = 7;
  if (schema_number != kStrided) {
    throw GraphError(fmt::format("expected strided tensors (layout {}), found layout {}; sparse tensors are not read",
                                 kStrided, schema_number));
  }
  return at::kStrided;
}

Pt2TensorMeta tensor_meta_of(const Json& meta) {
  layout_of(integer_of(meta.at("layout")));
  return {scalar_type_of(integer_of(meta.at("dtype"))), sizes_of(meta.at("sizes")), sizes_of(meta.at("strides")),
          size_of(meta.at("storage_offset")), meta.at("requires_grad").get<bool>()};
}

}  // namespace tutti::graph
