// A parser's callback counts, measures depth, and drops what is not needed.
#include "src/graph/bounded_json.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "src/graph/graph.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

class Filter {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > kMaxJsonDepth) throw GraphError(fmt::format("the JSON is nested deeper than {} levels", kMaxJsonDepth));
    if (event != Event::key) {
      if (++count_ > kMaxJsonValues) {
        throw GraphError(fmt::format("the JSON has more than {} values", kMaxJsonValues));
      }
      return true;
    }
    const auto& key = value.get_ref<const std::string&>();
    if (depth <= metadata_depth_) metadata_depth_ = kNone;
    if (metadata_depth_ == kNone && key == "metadata") metadata_depth_ = depth;
    return metadata_depth_ == kNone || depth == metadata_depth_ || key == "nn_module_stack";
  }

 private:
  static constexpr int kNone = std::numeric_limits<int>::max();
  int metadata_depth_ = kNone;  ///< of the key "metadata" whose value is being read
  int64_t count_ = 0;
};

[[noreturn]] void fail(const char* expected, const Json& found) {
  throw GraphError(fmt::format("expected {}, found {} {}", expected, found.type_name(),
                               found.is_primitive() ? found.dump().substr(0, 80) : ""));
}

}  // namespace

Json parse_bounded_json(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxJsonBytes) {
    throw GraphError(fmt::format("the JSON has {} bytes, expected at most {}", text.size(), kMaxJsonBytes));
  }
  try {
    return Json::parse(text, Filter());
  } catch (const Json::exception& error) {
    throw GraphError(fmt::format("it is not valid JSON: {}", error.what()));
  }
}

int64_t integer_of(const Json& value) {
  if (!value.is_number_integer()) fail("an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    fail("an integer of 64 bits", value);
  }
  return value.get<int64_t>();
}

double real_of(const Json& value) {
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) fail("a number", value);
  return value.get<double>();
}

}  // namespace tutti::graph
