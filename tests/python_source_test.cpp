// The text of model.py. What it computes is checked by tests/pytorch/check_model_py.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/graph/layer_list.h"

namespace tutti::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string source(const std::string& layers, std::vector<int64_t> shape) {
  return python_source(nlohmann::json::parse(layers), {"x", std::move(shape)});
}

TEST(PythonSource, WritesASequentialOfTheLayers) {
  EXPECT_THAT(source(R"([{"conv2d": {"out": 8, "kernel": [5, 3], "padding": 2, "bias": false}}, "relu", "flatten",
                         {"linear": 10}])",
                     {1, 28, 28}),
              HasSubstr("class Model(nn.Sequential):\n"
                        "    \"\"\"Input: [batch, 1, 28, 28], float.\"\"\"\n\n"
                        "    def __init__(self):\n"
                        "        super().__init__(\n"
                        "            nn.Conv2d(1, 8, (5, 3), padding=2, bias=False),\n"
                        "            nn.ReLU(),\n"
                        "            nn.Flatten(),\n"
                        "            nn.Linear(6720, 10),\n"
                        "        )\n"));
}

TEST(PythonSource, DefinesTheClassesItUsesAndNoOthers) {
  const std::string residual = source(R"([{"residual": [{"linear": 4}]}])", {4});
  EXPECT_THAT(residual, HasSubstr("class Residual(nn.Module):"));
  EXPECT_THAT(residual, HasSubstr("            Residual(nn.Sequential(nn.Linear(4, 4)), nn.Sequential()),\n"));
  EXPECT_THAT(residual, Not(HasSubstr("class Branches")));
  const std::string branches = source(R"([{"branches": {"paths": [["relu"], []], "join": "add"}}])", {4});
  EXPECT_THAT(branches, HasSubstr("Branches(nn.Sequential(nn.ReLU()), nn.Sequential(), join='add'),"));
  EXPECT_THAT(branches, Not(HasSubstr("class Residual")));
}

TEST(PythonSource, MakesAZooEntryAloneTheModelItself) {
  const std::string resnet = source(R"([{"resnet20": 10}])", {3, 32, 32});
  EXPECT_THAT(resnet, HasSubstr("class Model(ResNet):"));
  EXPECT_THAT(resnet, HasSubstr("            blocks=3,\n"));
  const std::string among = source(R"(["relu", {"lenet5": 10}])", {1, 28, 28});
  EXPECT_THAT(among, HasSubstr("class Model(nn.Sequential):"));
  EXPECT_THAT(among, HasSubstr("LeNet5(channels=1, features=400, padding=2, classes=10),"));
}

TEST(PythonSource, RefusesWhatTheGraphRefuses) { EXPECT_THROW(source(R"([{"linear": 10}])", {1, 28, 28}), LayerError); }

}  // namespace
}  // namespace tutti::graph
