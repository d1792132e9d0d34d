// JSON from files that nobody vouches for.
#ifndef TUTTI_SRC_GRAPH_BOUNDED_JSON_H
#define TUTTI_SRC_GRAPH_BOUNDED_JSON_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tutti::graph {

inline constexpr int64_t kMaxJsonBytes = int64_t{256} << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr int64_t kMaxJsonValues = 8'000'000;

/// Parses a program's JSON. Of what nodes carry as `metadata` only `nn_module_stack` is kept. Throws GraphError where
/// the text is not JSON, is nested deeper than kMaxJsonDepth, or keeps more than kMaxJsonValues values; memory stays
/// within a few times kMaxJsonBytes.
nlohmann::json parse_bounded_json(std::string_view text);

/// An integer; throws GraphError for anything else and for what does not fit.
int64_t integer_of(const nlohmann::json& value);

/// A number; "Infinity", "-Infinity" and "NaN" stand for themselves. Throws GraphError for anything else.
double real_of(const nlohmann::json& value);

}  // namespace tutti::graph

#endif
