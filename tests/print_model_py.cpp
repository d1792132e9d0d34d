// Prints the model.py of a layer list: standard input holds {"layers": [...], "input_shape": [...], "indices": bool}.
// Used by tests/pytorch/check_model_py.py.
#include <iostream>

#include "src/graph/layer_list.h"

// NOLINTNEXTLINE(bugprone-exception-escape): an exception ends it, and shows what was wrong
int main() {
  const nlohmann::json request = nlohmann::json::parse(std::cin);
  const tutti::graph::InputShape input{"x", request.at("input_shape").get<std::vector<int64_t>>(),
                                       request.at("indices").get<bool>() ? at::kLong : at::kFloat};
  std::cout << tutti::graph::python_source(request.at("layers"), input);
}
